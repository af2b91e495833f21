// laxity: inside a priority class, a group with a deadline lets all others pass while it has slack, and runs before all
// of them once it has none.
//
//   - slack = deadline - now - left; left = usual_ns - burst_ns: the open-gate time that the tenant's recent bursts
//     needed, less what this burst has had. Without known bursts there is no slack.
//   - With slack, a group ranks below groups without deadlines and equal to others with slack. It is urgent once its
//     slack is laxity_margin_us or less, and stays urgent while it runs; otherwise it would change places at every
//     report of progress.
//   - A request is rarely one burst: copy, kernels, copy. Work that begins within laxity_margin_us (or linger_us, if
//     longer) after urgent work is urgent, too, whatever its deadline; meanwhile others wait for it no longer
//     than linger_us. So a group with deadlines that pauses for less stays urgent.
//   - Among urgent groups, the earliest latest start (deadline - usual_ns) runs first. It does not change with
//     progress; otherwise two equal groups would take over from each other all the time.
// Late work stays urgent. Thread rule: pure function.
#include <algorithm>

#include "daemon/policy/standing.h"

namespace xschedd::policy {
namespace {

constexpr std::int64_t kSlack = -1;
constexpr std::int64_t kOrdinary = 0;  // no deadline
// Urgent levels: this, above any clock time, less the latest start.
constexpr std::int64_t kUrgent = std::numeric_limits<std::int64_t>::max();

std::int64_t UrgentLevel(std::uint64_t deadline_ns, const Tenant& tenant) {
  return kUrgent - static_cast<std::int64_t>(deadline_ns - std::min(deadline_ns, tenant.usual_ns));
}

// When the tenant's work becomes urgent if it does not run before; 0: it is urgent at once.
std::uint64_t UrgentFrom(std::uint64_t deadline_ns, const Tenant& tenant, std::uint64_t margin_ns) {
  if (tenant.usual_ns == 0) return 0;
  const std::uint64_t had = tenant.busy ? tenant.burst_ns : 0;
  const std::uint64_t left = tenant.usual_ns - std::min(tenant.usual_ns, had);
  return deadline_ns - std::min(deadline_ns, left + margin_ns);
}

// Whether work that was urgent at the last decision goes on, or has paused for less than `pause_ns`.
bool GoesOn(const Candidate& candidate, std::uint64_t pause_ns) {
  const GroupMemory& memory = candidate.group.memory;
  if (memory.urgent_ns == 0) return false;
  // Never seen idle, it is the same work, whatever its deadline is now.
  if (memory.urgent_busy && candidate.busy) return true;
  std::uint64_t idle_since = 0;
  std::uint64_t until = candidate.now_ns;
  for (const std::uint32_t index : candidate.tenants) {
    const Tenant& tenant = candidate.state.tenants[index];
    idle_since = std::max(idle_since, tenant.idle_since_ns);
    if (tenant.busy) until = std::min(until, tenant.busy_since_ns);
  }
  return until < idle_since + pause_ns;
}

// The latest deadline of the group's unfinished work if any of that is urgent, since a group runs as one; else 0.
std::uint64_t UrgentUntil(const Candidate& candidate, std::uint64_t margin_ns, bool goes_on) {
  std::uint64_t latest = 0;
  bool urgent = goes_on;
  for (const std::uint32_t index : candidate.tenants) {
    const Tenant& tenant = candidate.state.tenants[index];
    if (!tenant.busy || tenant.deadline_ns == 0) continue;
    latest = std::max(latest, tenant.deadline_ns);
    urgent = urgent || UrgentFrom(tenant.deadline_ns, tenant, margin_ns) <= candidate.now_ns;
  }
  return urgent ? latest : 0;
}

}  // namespace

Standing LaxityStanding(const Candidate& candidate, GroupMemory& next) {
  const Settings& settings = candidate.state.settings;
  const std::uint64_t margin = settings.laxity_margin_us * kNsPerUs;
  const std::uint64_t linger = settings.linger_us * kNsPerUs;
  const std::uint64_t now = candidate.now_ns;
  const bool goes_on = GoesOn(candidate, std::max(linger, margin));
  next.urgent_busy = candidate.busy;
  next.urgent_ns = UrgentUntil(candidate, margin, goes_on);
  if (!candidate.busy && goes_on) next.urgent_ns = candidate.group.memory.urgent_ns;
  const bool lingers = !candidate.busy && GoesOn(candidate, linger);

  Standing standing;
  standing.level = kLast;
  standing.potential = kOrdinary;
  for (const std::uint32_t index : candidate.tenants) {
    const Tenant& tenant = candidate.state.tenants[index];
    const std::uint64_t if_started = tenant.deadline_after_ns == 0 ? 0 : now + tenant.deadline_after_ns;
    if (if_started != 0) standing.potential = std::max(standing.potential, UrgentLevel(if_started, tenant));
    standing.ranked = standing.ranked || if_started != 0 || tenant.deadline_ns != 0;
    // A busy group's level comes from its busy tenants, an idle one's from all.
    if (candidate.busy && !tenant.busy) continue;
    const std::uint64_t deadline = tenant.busy ? tenant.deadline_ns : if_started;
    std::int64_t level = kOrdinary;
    if (deadline != 0) {
      const std::uint64_t urgent_from = UrgentFrom(deadline, tenant, margin);
      const bool urgent = tenant.busy ? next.urgent_ns != 0 : lingers || urgent_from <= now;
      level = urgent ? UrgentLevel(deadline, tenant) : kSlack;
      if (tenant.busy && !urgent) standing.next_decision_ns = std::min(standing.next_decision_ns, urgent_from);
    }
    standing.level = std::max(standing.level, level);
  }
  standing.potential = std::max(standing.potential, standing.level);
  return standing;
}

}  // namespace xschedd::policy
