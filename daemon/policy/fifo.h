// fifo: everybody is open and untracked, as without xschedd; only an administrator's hold binds.
// Thread rule: pure function.
#pragma once

#include "daemon/policy/types.h"

namespace xschedd::policy {

// Overwrites `decision`, whose memory is used again.
void DecideFifo(const State& state, Decision& decision);

}  // namespace xschedd::policy
