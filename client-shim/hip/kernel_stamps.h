// The device's own time stamps of kernels, intercepted where the HIP runtime reads them.
//
// HIP reports the time between two events, but not when a kernel starts: the start event of hipExtLaunchKernel is a
// marker in front of the kernel, which is reached before the kernel waits for those of other processes. But to fill in
// the stop event, the runtime asks the layer below for the kernel's start and end, by
// hsa_amd_profiling_get_dispatch_time. The preloaded stub defines that function and passes it on. Only kernels launched
// with a stop event get stamps. Up to ROCm 6.2 the runtime asks when an event behind the kernel is done; in 6.4 only
// when it is asked for the stop event's time, or uses the kernel's signal again, some 20 launches later (clr 6.4.3:
// Device::getHwEventTime, and hipEventRecord, which flushes no batch).
// Thread rule: any thread; no lock.
#pragma once

#include "client-shim/core/interface.h"
#include "client-shim/stub/exposed.h"

namespace xschedd::shim::hip {

// As Vendor::next_stamp.
bool NextKernelStamp(uint64_t* cursor, Stamp* out);

struct DispatchTime;

}  // namespace xschedd::shim::hip

XS_EXPORTED int hsa_amd_profiling_get_dispatch_time(uint64_t agent, uint64_t signal,
                                                    xschedd::shim::hip::DispatchTime* time);
