#include "daemon/policy/service.h"

#include <algorithm>

namespace xschedd::policy {

std::uint64_t Service(const Candidate& candidate) {
  const std::vector<Tenant>& all = candidate.state.tenants;
  std::uint64_t most = 0;
  for (const std::uint32_t first : candidate.tenants) {
    if (all[first].ran_ns == 0) continue;
    // Few of a group's tenants are on one device: nearly always one.
    std::uint64_t sum = 0;
    for (const std::uint32_t other : candidate.tenants)
      if (all[other].device == all[first].device) sum += all[other].ran_ns;
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace xschedd::policy
