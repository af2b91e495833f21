// deadline: inside a priority class the earliest deadline runs first.
//
//   - A group's deadline is the earliest of its busy tenants'. Equal deadlines run together; groups without one run
//     together, after the others. Late work keeps its deadline, and so its place, and is never dropped.
//   - An idle group ranks as if it became busy now. Through its potential, exactly the groups that it would overtake
//     have background windows: work due in a second has one beside a neighbour with 33 ms frames until its own deadline
//     is 33 ms away, and work without a deadline always has. Ranking potentials by deadline_after_ns alone would keep
//     that window to the end, where no work can overtake it any more.
// A group that is always late starves the others, except for the guard. Thread rule: pure function.
#include <algorithm>

#include "daemon/policy/standing.h"

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
