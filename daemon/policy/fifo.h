// fifo: all clients are open and untracked, as without xschedd, except those that an administrator or their own user
// holds. Thread rule: pure function.
#pragma once

#include "daemon/policy/types.h"

namespace xschedd::policy {

// Overwrites `decision` and reuses its memory.
void DecideFifo(const State& state, Decision& decision);

}  // namespace xschedd::policy
