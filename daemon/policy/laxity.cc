#include "daemon/policy/laxity.h"

#include <algorithm>

namespace xschedd::policy {
namespace {

constexpr std::int64_t kSlack = -1;    // may wait
constexpr std::int64_t kOrdinary = 0;  // no deadline
// Urgent: above any time that a clock gives, less the latest start.
constexpr std::int64_t kUrgent = std::numeric_limits<std::int64_t>::max();

std::int64_t UrgentLevel(std::uint64_t deadline_ns, const Tenant& tenant) {
  return kUrgent - static_cast<std::int64_t>(deadline_ns - std::min(deadline_ns, tenant.usual_ns));
}

// When the tenant's work has no slack left, if it does not run before; 0: it never had any.
std::uint64_t UrgentFrom(std::uint64_t deadline_ns, const Tenant& tenant, std::uint64_t margin_ns) {
  if (tenant.usual_ns == 0) return 0;
  const std::uint64_t had = tenant.busy ? tenant.burst_ns : 0;
  const std::uint64_t left = tenant.usual_ns - std::min(tenant.usual_ns, had);
  return deadline_ns - std::min(deadline_ns, left + margin_ns);
}

}  // namespace

Standing LaxityStanding(const Candidate& candidate, GroupMemory& next) {
  const std::uint64_t margin = candidate.state.settings.laxity_margin_us * kNsPerUs;
  const std::uint64_t now = candidate.now_ns;
  Standing standing;
  standing.level = kLast;
  standing.potential = kOrdinary;
  // Of the unfinished work that is urgent, the latest deadline; what is wanted by then is, too, since a group runs as
  // one.
  for (const std::uint32_t index : candidate.tenants) {
    const Tenant& tenant = candidate.state.tenants[index];
    if (!tenant.busy || tenant.deadline_ns == 0) continue;
    const bool was_urgent = tenant.deadline_ns <= candidate.group.memory.urgent_ns;
    if (was_urgent || UrgentFrom(tenant.deadline_ns, tenant, margin) <= now) {
      next.urgent_ns = std::max(next.urgent_ns, tenant.deadline_ns);
    }
  }
  for (const std::uint32_t index : candidate.tenants) {
    const Tenant& tenant = candidate.state.tenants[index];
    const std::uint64_t if_started = tenant.deadline_after_ns == 0 ? 0 : now + tenant.deadline_after_ns;
    if (if_started != 0) standing.potential = std::max(standing.potential, UrgentLevel(if_started, tenant));
    standing.ranked = standing.ranked || if_started != 0 || tenant.deadline_ns != 0;
    // A group stands where its busy tenants put it; an idle one where all of them would.
    if (candidate.busy && !tenant.busy) continue;
    const std::uint64_t deadline = tenant.busy ? tenant.deadline_ns : if_started;
    std::int64_t level = kOrdinary;
    if (deadline != 0) {
      const std::uint64_t urgent_from = UrgentFrom(deadline, tenant, margin);
      const bool urgent = tenant.busy ? deadline <= next.urgent_ns : urgent_from <= now;
      level = urgent ? UrgentLevel(deadline, tenant) : kSlack;
      if (tenant.busy && !urgent) standing.next_look_ns = std::min(standing.next_look_ns, urgent_from);
    }
    standing.level = std::max(standing.level, level);
  }
  standing.potential = std::max(standing.potential, standing.level);
  return standing;
}

}  // namespace xschedd::policy
