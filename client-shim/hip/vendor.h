// HIP as the core sees it (core/interface.h). Thread rule: any thread; MakeVendor once, after PrepareRuntime.
#pragma once

#include "client-shim/core/interface.h"
#include "client-shim/stub/past_handles.h"

namespace xschedd::shim::hip {

const Vendor* MakeVendor();

// The events that the program has destroyed.
extern PastHandles g_past_events;

// "0000:05:00.0", in small letters. False: unknown. After MakeVendor.
bool PciAddress(int device, char* out, size_t size);
// The runtime's number of devices; 0: unknown. After MakeVendor.
int DeviceCount();

}  // namespace xschedd::shim::hip
