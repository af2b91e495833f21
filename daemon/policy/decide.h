// The one entry to all policies. Contract: types.h; promises: docs/explanation/policies.md. Cost: O(n) in tenants and
// O(b log b) in busy groups. Thread rule: pure but for scratch memory; one user per Decider.
#pragma once

#include "daemon/policy/arbiter.h"
#include "daemon/policy/types.h"

namespace xschedd::policy {

// Keeps only scratch memory between calls, so that deciding again does not allocate.
class Decider {
 public:
  // The result is valid until the next call.
  const Decision& Decide(const State& state, std::uint64_t now_ns);

 private:
  Arbiter arbiter_;
  Decision decision_;
};

// For a single decision.
Decision Decide(const State& state, std::uint64_t now_ns);

}  // namespace xschedd::policy
