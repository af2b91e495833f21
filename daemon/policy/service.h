// How much GPU time a group has had. Thread rule: pure function.
#pragma once

#include "daemon/policy/standing.h"

namespace xschedd::policy {

// Since the last decision, in ns: the greatest over its devices of the sum over its tenants there (its dominant
// device). A gang on eight devices is charged as what it is to each of its neighbours, not eight times.
std::uint64_t Service(const Candidate& candidate);

}  // namespace xschedd::policy
