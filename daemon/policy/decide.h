// The policies' one entrance. See types.h for the contract, docs/policies.md for what each policy promises.
// Cost: O(n log n) in the groups and O(n) in the tenants of the State. Thread rule: pure function.
#pragma once

#include "daemon/policy/types.h"

namespace xschedd::policy {

Decision Decide(const State& state, std::uint64_t now_ns);

}  // namespace xschedd::policy
