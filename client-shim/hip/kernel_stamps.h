// The device's own time stamps of kernels, overheard where the HIP runtime reads them.
//
// HIP reports the time between two events' ends, but no kernel's start: the start event of hipExtLaunchKernel is a
// marker in front of the kernel, which is passed before the kernel waits for those of other processes. But to fill in
// the stop event, the runtime asks the layer below, by hsa_amd_profiling_get_dispatch_time, for the kernel's start and
// end; the preloaded stub stands in between. Only launches with a stop event are asked for.
// Thread rule: any thread; no lock.
#pragma once

#include "client-shim/core/interface.h"

namespace xschedd::shim::hip {

// As Vendor::next_stamp.
bool NextKernelStamp(uint64_t* cursor, Stamp* out);

}  // namespace xschedd::shim::hip
