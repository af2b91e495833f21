// fair: inside a priority class, who has had least of the GPU goes first, for jobs of which nothing is known.
//
//   - There are kFairLevels levels. A group's job begins on the first and goes down one each time that it has had the
//     level's quantum of GPU time: fair_quantum_ms on the first, four times as much on each further one, no end on the
//     last. Those on one level run together. So short jobs overtake long ones without being announced.
//   - A nanosecond of idleness takes one of attained GPU time away, and no more than twice what leads to the last level
//     is remembered. So a tenant of requests that is idle for most of the time stays on the first level, whatever it
//     has had in all, and no job needs longer than that to be a new one (0.84 s at the default). Waiting is not
//     idleness.
//   - GPU time of a group: the greatest over its devices of the sum over its tenants there.
// Starvation of the last level is limited by the guard alone. Thread rule: pure function.
#include <algorithm>

#include "daemon/policy/service.h"
#include "daemon/policy/standing.h"

namespace xschedd::policy {
namespace {

constexpr std::uint64_t kGrowth = 4;
// Looking at a group that is about to fall no more often than this.
constexpr std::uint64_t kShortestLookNs = kNsPerMs;

// What leads from the first level to `level`.
std::uint64_t Threshold(int level, std::uint64_t quantum_ns) {
  std::uint64_t sum = 0;
  for (int i = 0; i < level; ++i) {
    sum += quantum_ns;
    quantum_ns *= kGrowth;
  }
  return sum;
}

}  // namespace

Standing FairStanding(const Candidate& candidate, GroupMemory& next) {
  const FairMemory& before = candidate.group.memory.fair;
  const std::uint64_t quantum = candidate.state.settings.fair_quantum_ms * kNsPerMs;
  const std::uint64_t idle = before.busy ? 0 : candidate.now_ns - before.counted_ns;
  std::uint64_t attained = before.attained_ns - std::min(before.attained_ns, idle);
  attained = std::min(attained + Service(candidate), 2 * Threshold(kFairLevels - 1, quantum));

  int level = 0;
  while (level + 1 < kFairLevels && attained >= Threshold(level + 1, quantum))
    ++level;
  Standing standing;
  standing.ranked = true;
  standing.level = -level;
  // While it is idle it becomes newer; while it is busy only older.
  standing.potential = candidate.busy ? -level : 0;
  if (candidate.busy && level + 1 < kFairLevels) {
    const std::uint64_t left = Threshold(level + 1, quantum) - attained;
    standing.next_look_ns = candidate.now_ns + std::max(left, kShortestLookNs);
  }
  next.fair = {.attained_ns = attained, .counted_ns = candidate.now_ns, .busy = candidate.busy};
  return standing;
}

}  // namespace xschedd::policy
