// fifo: everybody is open and untracked, as without xschedd; only an administrator's hold binds.
// Thread rule: pure function.
#pragma once

#include "daemon/policy/types.h"

namespace xschedd::policy {

Decision DecideFifo(const State& state);

}  // namespace xschedd::policy
