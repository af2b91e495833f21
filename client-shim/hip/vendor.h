// HIP as the core sees it (core/interface.h). Thread rule: any thread; MakeVendor once, after PrepareRuntime.
#pragma once

#include "client-shim/core/interface.h"

namespace xschedd::shim {

const Vendor* MakeVendor();

}  // namespace xschedd::shim
