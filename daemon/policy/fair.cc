// fair: inside a priority class the owner with the least GPU time runs first, and of one owner's groups the one with
// the least, for jobs about which nothing is known.
//
//   - A group begins on the first of kFairLevels levels and goes down one whenever it has used the level's quantum of
//     GPU time: fair_quantum_ms on the first, four times as much on each further one, no limit on the last. Groups on
//     one level run together. So short jobs overtake long ones without announcing it.
//   - A nanosecond of idleness takes one off the GPU time that counts, which is at most twice what leads to the last
//     level. So a tenant that is mostly idle stays on the first level, whatever it has used in all, and any job is new
//     again after that much idleness (0.84 s by default). Waiting is not idleness.
//   - An owner's level is that of what all its groups with work have used together; a group's own level decides among
//     owners of one level. So two processes do not get twice the GPU.
//   - A group's GPU time: service.h.
// Only the guard limits starvation of the last level. Thread rule: pure function.
#include <algorithm>
#include <optional>

#include "daemon/policy/service.h"
#include "daemon/policy/standing.h"

namespace xschedd::policy {
namespace {

constexpr std::uint64_t kGrowth = 4;
// The least time until the next decision about a group that is about to go down.
constexpr std::uint64_t kShortestWaitNs = kNsPerMs;

// The GPU time that leads from the first level to `level`.
std::uint64_t Threshold(int level, std::uint64_t quantum_ns) {
  std::uint64_t sum = 0;
  for (int i = 0; i < level; ++i) {
    sum += quantum_ns;
    quantum_ns *= kGrowth;
  }
  return sum;
}

int LevelOf(std::uint64_t attained_ns, std::uint64_t quantum_ns) {
  int level = 0;
  while (level + 1 < kFairLevels && attained_ns >= Threshold(level + 1, quantum_ns))
    ++level;
  return level;
}

// How much more leads to the next level; none: it is on the last one.
std::optional<std::uint64_t> Left(std::uint64_t attained_ns, std::uint64_t quantum_ns) {
  const int level = LevelOf(attained_ns, quantum_ns);
  if (level + 1 == kFairLevels) return std::nullopt;
  return Threshold(level + 1, quantum_ns) - attained_ns;
}

std::uint64_t Quantum(const Candidate& candidate) {
  return candidate.state.settings.fair_quantum_ms * kNsPerMs;
}

// The owner's level first.
int Combined(int owner_level, int own_level) {
  return -(owner_level * kFairLevels + own_level);
}

}  // namespace

std::uint64_t FairUse(const Candidate& candidate) {
  const FairMemory& before = candidate.group.memory.fair;
  const std::uint64_t idle = before.busy ? 0 : candidate.now_ns - before.counted_ns;
  const std::uint64_t attained = before.attained_ns - std::min(before.attained_ns, idle);
  return std::min(attained + Service(candidate), 2 * Threshold(kFairLevels - 1, Quantum(candidate)));
}

Standing FairStanding(const Candidate& candidate, GroupMemory& next) {
  const std::uint64_t quantum = Quantum(candidate);
  const std::uint64_t attained = FairUse(candidate);
  const std::uint64_t of_owner = attained + candidate.others_use_ns;
  const int level = LevelOf(attained, quantum);
  Standing standing;
  standing.ranked = true;
  standing.level = Combined(LevelOf(of_owner, quantum), level);
  // Idle, it only rises; busy, it only falls, unless others of its owner become idle.
  standing.potential = candidate.busy ? Combined(level, level) : 0;
  if (candidate.busy) {
    // All groups of the owner may run at once.
    const std::uint64_t together = candidate.others_busy + 1;
    const std::uint64_t left = Left(attained, quantum).value_or(kNever);
    const std::uint64_t owner_left = Left(of_owner, quantum).value_or(kNever) / together;
    const std::uint64_t least = std::min(left, owner_left);
    if (least < kNever / together) standing.next_decision_ns = candidate.now_ns + std::max(least, kShortestWaitNs);
  }
  next.fair = {.attained_ns = attained, .owner_ns = of_owner, .counted_ns = candidate.now_ns, .busy = candidate.busy};
  return standing;
}

}  // namespace xschedd::policy
