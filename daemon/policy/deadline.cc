// deadline: inside a priority class, whose work is wanted first goes first.
//
//   - A group's deadline is the earliest of its busy tenants'. Equal ones run together; groups without a deadline run
//     together, after those with one. Late work keeps its place: it is more urgent than any other, and never dropped.
//   - An idle group stands where it would stand if it became busy now. So it has background windows prepared for itself
//     (its potential) exactly beside those that it would overtake: work wanted in a second is shallow beside a
//     neighbour with 33 ms frames for as long as its own end is more than 33 ms away, and work without a deadline
//     always is. Ordering potentials by deadline_after_ns alone would keep it shallow to the end, where nobody can
//     overtake it.
// One whose work is never done in time starves the others, but for the guard. Thread rule: pure function.
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
