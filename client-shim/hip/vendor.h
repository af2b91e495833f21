// HIP as the core sees it (core/interface.h). Thread rule: any thread; MakeVendor once, after PrepareRuntime.
#pragma once

#include "client-shim/core/interface.h"

namespace xschedd::shim {

const Vendor* MakeVendor();

// Of the runtime; 0 where it does not say. After MakeVendor.
int DeviceCount();

}  // namespace xschedd::shim
