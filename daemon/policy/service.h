// How much GPU time a group used. Thread rule: pure function.
#pragma once

#include "daemon/policy/standing.h"

namespace xschedd::policy {

// Since the last decision, in ns: the sum over its tenants on the device where that is greatest. So a gang on eight
// devices is charged what its neighbours see of it, not eight times that.
std::uint64_t Service(const Candidate& candidate);

}  // namespace xschedd::policy
