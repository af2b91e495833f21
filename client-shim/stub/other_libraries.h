// The functions that the stub defines in place of libraries other than the runtimes of HIP and CUDA. Thread rule: any
// thread.
#pragma once

#include "client-shim/stub/exposed.h"

namespace xschedd::shim {

extern const Exposed kOtherLibraries;

}  // namespace xschedd::shim
