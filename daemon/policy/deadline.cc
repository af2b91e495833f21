#include "daemon/policy/deadline.h"

#include <algorithm>

namespace xschedd::policy {
namespace {

std::int64_t LevelOf(std::uint64_t deadline_ns) {
  return deadline_ns == kNever ? kLast : -static_cast<std::int64_t>(deadline_ns);
}

}  // namespace

Standing DeadlineStanding(const Candidate& candidate, GroupMemory& /*next*/) {
  std::uint64_t wanted = kNever;      // of unfinished work
  std::uint64_t if_started = kNever;  // of work that begins now
  for (const std::uint32_t index : candidate.tenants) {
    const Tenant& tenant = candidate.state.tenants[index];
    if (tenant.busy && tenant.deadline_ns != 0) wanted = std::min(wanted, tenant.deadline_ns);
    if (tenant.deadline_after_ns != 0) if_started = std::min(if_started, candidate.now_ns + tenant.deadline_after_ns);
  }
  Standing standing;
  standing.level = LevelOf(candidate.busy ? wanted : if_started);
  standing.potential = LevelOf(std::min(wanted, if_started));
  standing.ranked = standing.potential != kLast;
  return standing;
}

}  // namespace xschedd::policy
