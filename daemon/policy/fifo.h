// fifo: everybody is open and untracked, as without xschedd; only a hold binds. Thread rule: pure function.
#pragma once

#include "daemon/policy/types.h"

namespace xschedd::policy {

// Overwrites `decision` and reuses its memory.
void DecideFifo(const State& state, Decision& decision);

}  // namespace xschedd::policy
