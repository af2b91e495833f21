#include "daemon/policy/waits.h"

#include <algorithm>
#include <cstddef>

namespace xschedd::policy {
namespace {

// A wait that begins within this time after the last one goes on with it: one call of a program may wait twice.
constexpr std::uint64_t kSameWaitNs = 50 * kNsPerUs;
// A wait that begins within this time after the last one is in its row.
constexpr std::uint64_t kRowNs = 2 * kNsPerMs;
// What happens less often than this is seldom.
constexpr float kSeldom = 0.25F;
// A wait weighs 1/this in the average of its place in a row.
constexpr float kFollowedWeight = 8;
// The shortest stretch grows by 1/this with each longer one.
constexpr std::uint64_t kStretchPart = 8;

// An index into `followed`.
std::size_t Place(const WaitMemory& memory) {
  return std::max<std::size_t>(memory.in_row, 1) - 1;
}

std::uint64_t ShortestOf(const WaitMemory& memory) {
  return memory.is_in_gap ? memory.gap_ns : memory.lead_ns;
}

void EndStretch(WaitMemory& memory, std::uint64_t end_ns) {
  if (memory.stretch_since_ns == 0) return;
  const std::uint64_t length_ns = end_ns - memory.stretch_since_ns;
  memory.stretch_since_ns = 0;
  if (memory.is_in_gap && length_ns < kRestLeadNs) return;
  const std::uint64_t shortest_ns = ShortestOf(memory);
  const std::uint64_t most_ns = shortest_ns == 0 ? kNever : shortest_ns + shortest_ns / kStretchPart;
  (memory.is_in_gap ? memory.gap_ns : memory.lead_ns) = std::min(length_ns, most_ns);
}

void BeginWait(WaitMemory& memory, std::uint64_t now_ns) {
  const std::uint64_t gap_ns = memory.until_ns == 0 ? kNever : now_ns - memory.until_ns;
  if (gap_ns < kSameWaitNs) {
    memory.stretch_since_ns = 0;
    return;
  }
  EndStretch(memory, now_ns);
  if (memory.in_row != 0) {
    const auto count = [](float& followed, bool follows) {
      followed += ((follows ? 1.0F : 0.0F) - followed) / kFollowedWeight;
    };
    count(memory.followed[Place(memory)], gap_ns < kWaitLingerNs);
    count(memory.followed_soon[Place(memory)], gap_ns < kRestLeadNs);
  }
  const auto most = static_cast<std::uint8_t>(memory.followed.size());
  memory.in_row = gap_ns < kRowNs ? std::min<std::uint8_t>(memory.in_row + 1, most) : 1;
}

}  // namespace

void NoteWaits(WaitMemory& memory, bool waits, std::uint64_t now_ns) {
  if (waits == memory.now) return;
  memory.now = waits;
  if (waits) {
    BeginWait(memory, now_ns);
  } else {
    memory.until_ns = memory.stretch_since_ns = now_ns;
    memory.is_in_gap = true;
  }
}

void NoteRequest(WaitMemory& memory, std::uint64_t ended_ns, std::uint64_t now_ns) {
  if (!memory.is_in_gap) EndStretch(memory, ended_ns);  // the last one did not wait
  memory.stretch_since_ns = now_ns;
  memory.is_in_gap = false;
}

bool Lingers(const WaitMemory& memory, std::uint64_t now_ns) {
  return memory.until_ns != 0 && now_ns < memory.until_ns + kWaitLingerNs && memory.followed[Place(memory)] >= kSeldom;
}

std::uint64_t NextWaitNs(const WaitMemory& memory) {
  const bool is_often_soon = memory.is_in_gap && memory.followed_soon[Place(memory)] >= kSeldom;
  return memory.stretch_since_ns == 0 || is_often_soon ? 0 : memory.stretch_since_ns + ShortestOf(memory);
}

}  // namespace xschedd::policy
