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

}  // namespace

Standing LaxityStanding(const Candidate& candidate, GroupMemory& next) {
  const std::uint64_t margin = candidate.state.settings.laxity_margin_us * kNsPerUs;
  const std::uint64_t now = candidate.now_ns;
  Standing standing;
  standing.level = kLast;
  standing.potential = kOrdinary;
  for (const std::uint32_t index : candidate.tenants) {
    const Tenant& tenant = candidate.state.tenants[index];
    if (tenant.deadline_after_ns != 0) {
      standing.ranked = true;
      standing.potential = std::max(standing.potential, UrgentLevel(now + tenant.deadline_after_ns, tenant));
    }
    // A group stands where its busy tenants put it; an idle one where all of them would.
    if (candidate.busy && !tenant.busy) continue;
    std::uint64_t deadline = tenant.deadline_ns;
    if (!tenant.busy) deadline = tenant.deadline_after_ns == 0 ? 0 : now + tenant.deadline_after_ns;
    if (deadline == 0) {
      standing.level = std::max(standing.level, kOrdinary);
      continue;
    }
    standing.ranked = true;
    const std::uint64_t had = tenant.busy ? tenant.burst_ns : 0;
    const std::uint64_t left = tenant.usual_ns - std::min(tenant.usual_ns, had);
    const std::uint64_t urgent_from = deadline - std::min(deadline, left + margin);
    const bool was_urgent = tenant.busy && deadline <= candidate.group.memory.urgent_ns;
    if (tenant.usual_ns == 0 || urgent_from <= now || was_urgent) {
      standing.level = std::max(standing.level, UrgentLevel(deadline, tenant));
      if (tenant.busy) next.urgent_ns = std::max(next.urgent_ns, deadline);
    } else {
      standing.level = std::max(standing.level, kSlack);
      if (tenant.busy) standing.next_look_ns = std::min(standing.next_look_ns, urgent_from);
    }
  }
  standing.potential = std::max(standing.potential, standing.level);
  return standing;
}

}  // namespace xschedd::policy
