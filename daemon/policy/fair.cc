// fair: inside a priority class the group with the least GPU time runs first, for jobs of which nothing is known.
//
//   - A group begins on the first of kFairLevels levels and goes down one whenever it has used the level's quantum of
//     GPU time: fair_quantum_ms on the first, four times as much on each further one, no limit on the last. Groups on
//     one level run together. So short jobs overtake long ones without announcing it.
//   - A nanosecond of idleness takes one off the GPU time that counts, which is at most twice what leads to the last
//     level. So a tenant that is mostly idle stays on the first level, whatever it has used in all, and any job is new
//     again after that much idleness (0.84 s by default). Waiting is not idleness.
//   - A group's GPU time: service.h.
// Only the guard limits starvation of the last level. Thread rule: pure function.
#include <algorithm>

#include "daemon/policy/service.h"
#include "daemon/policy/standing.h"

namespace xschedd::policy {
namespace {

constexpr std::uint64_t kGrowth = 4;
// The least time between looks at a group that is about to go down.
constexpr std::uint64_t kShortestLookNs = kNsPerMs;

// The GPU time that leads from the first level to `level`.
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
  // Idle, it only rises; busy, it only falls.
  standing.potential = candidate.busy ? -level : 0;
  if (candidate.busy && level + 1 < kFairLevels) {
    const std::uint64_t left = Threshold(level + 1, quantum) - attained;
    standing.next_look_ns = candidate.now_ns + std::max(left, kShortestLookNs);
  }
  next.fair = {.attained_ns = attained, .counted_ns = candidate.now_ns, .busy = candidate.busy};
  return standing;
}

}  // namespace xschedd::policy
