// The policies' one entrance. See types.h for the contract, docs/explanation/policies.md for what each policy promises.
// Cost: O(n) in the tenants of the State and O(b log b) in its busy groups. Thread rule: pure in meaning; a Decider has
// one user.
#pragma once

#include "daemon/policy/arbiter.h"
#include "daemon/policy/types.h"

namespace xschedd::policy {

// Decides often without allocating: it keeps scratch memory between calls, and nothing else.
class Decider {
 public:
  // The result is valid until the next call.
  const Decision& Decide(const State& state, std::uint64_t now_ns);

 private:
  Arbiter arbiter_;
  Decision decision_;
};

// Once.
Decision Decide(const State& state, std::uint64_t now_ns);

}  // namespace xschedd::policy
