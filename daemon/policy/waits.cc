#include "daemon/policy/waits.h"

#include <algorithm>
#include <cstddef>

namespace xschedd::policy {
namespace {

// A wait that begins within this time after the last one is in its row.
constexpr std::uint64_t kRowNs = 2 * kNsPerMs;
// What happens less often than this is seldom.
constexpr float kSeldom = 0.25F;
// A wait weighs 1/this in the average of its place in a row.
constexpr float kFollowedWeight = 8;
// The least of recent stretches grows by 1/this with each longer one.
constexpr std::uint64_t kStretchPart = 8;
// Fewer launches do not show how far a stretch has come.
constexpr std::uint64_t kFewLaunches = 16;
// Nor does the pace of less than 1/this of them.
constexpr std::uint64_t kPacePart = 4;
// It is asked again once half of the time that is left has passed, as the pace may change, but not more often.
constexpr std::uint64_t kAskAgainNs = 100 * kNsPerUs;

// An index into `followed`.
std::size_t Place(const WaitMemory& memory) {
  return std::max<std::size_t>(memory.in_row, 1) - 1;
}

const WaitMemory::Stretch& LeastOf(const WaitMemory& memory) {
  return memory.is_in_gap ? memory.gap : memory.lead;
}

std::uint64_t Least(std::uint64_t least, std::uint64_t present) {
  const std::uint64_t most = least == 0 ? kNever : least + std::max<std::uint64_t>(least / kStretchPart, 1);
  return std::min(present, most);
}

void BeginStretch(WaitMemory& memory, bool is_gap, std::uint64_t now_ns) {
  memory.stretch_since_ns = now_ns;
  memory.launched = memory.shut_since_ns = 0;
  memory.is_in_gap = is_gap;
}

void EndStretch(WaitMemory& memory, std::uint64_t end_ns) {
  if (memory.stretch_since_ns == 0) return;
  const std::uint64_t length_ns = end_ns - memory.stretch_since_ns;
  memory.stretch_since_ns = 0;
  if (memory.is_in_gap && length_ns < kRestLeadNs) return;
  WaitMemory::Stretch& least = memory.is_in_gap ? memory.gap : memory.lead;
  least = {.ns = Least(least.ns, length_ns), .launches = Least(least.launches, memory.launched)};
}

void Count(float& part, bool is_so) {
  part += ((is_so ? 1.0F : 0.0F) - part) / kFollowedWeight;
}

// How often a wait that has gone on as often as the last one does not again.
template <typename Memory>
auto& Ended(Memory& memory) {
  auto& at_place = memory.ended[Place(memory)];
  return at_place[std::min<std::size_t>(memory.went_on, at_place.size() - 1)];
}

// Returns whether a row begins.
bool BeginWait(WaitMemory& memory, std::uint64_t now_ns) {
  const std::uint64_t gap_ns = memory.until_ns == 0 ? kNever : now_ns - memory.until_ns;
  const bool goes_on = gap_ns < kSameWaitNs;
  if (memory.in_row != 0) Count(Ended(memory), !goes_on);
  if (goes_on) {
    memory.stretch_since_ns = 0;
    memory.went_on = static_cast<std::uint8_t>(std::min<std::size_t>(memory.went_on + 1, memory.ended.size()));
    return false;
  }
  EndStretch(memory, now_ns);
  if (memory.in_row != 0) {
    Count(memory.followed[Place(memory)], gap_ns < kWaitLingerNs);
    Count(memory.followed_soon[Place(memory)], gap_ns < kRestLeadNs);
  }
  const auto most = static_cast<std::uint8_t>(memory.followed.size());
  const bool goes_past = memory.in_row == most;
  memory.in_row = gap_ns < kRowNs ? std::min<std::uint8_t>(memory.in_row + 1, most) : 1;
  memory.went_on = 0;
  return goes_past || memory.in_row == 1;
}

}  // namespace

void NoteLaunches(WaitMemory& memory, std::uint64_t launched) {
  memory.launched += launched;
}

bool NoteWaits(WaitMemory& memory, bool waits, std::uint64_t now_ns) {
  if (waits == memory.now) return false;
  memory.now = waits;
  if (waits) return BeginWait(memory, now_ns);
  memory.until_ns = now_ns;
  BeginStretch(memory, true, now_ns);
  return false;
}

void NoteRequest(WaitMemory& memory, std::uint64_t ended_ns, std::uint64_t now_ns) {
  if (!memory.is_in_gap) EndStretch(memory, ended_ns);  // the last one did not wait
  BeginStretch(memory, false, now_ns);
}

std::uint64_t LingersUntilNs(const WaitMemory& memory) {
  if (memory.until_ns == 0) return 0;
  if (memory.followed[Place(memory)] >= kSeldom) return memory.until_ns + kWaitLingerNs;
  return Ended(memory) <= 1 - kSeldom ? memory.until_ns + kSameWaitNs : 0;
}

std::uint64_t NearUntilNs(const WaitMemory& memory) {
  const bool is_often_soon = memory.is_in_gap && memory.followed_soon[Place(memory)] >= kSeldom;
  return is_often_soon ? memory.until_ns + kRestLeadNs : 0;
}

std::uint64_t NextWaitNs(const WaitMemory& memory, std::uint64_t now_ns) {
  const WaitMemory::Stretch& least = LeastOf(memory);
  if (memory.stretch_since_ns == 0 || now_ns < NearUntilNs(memory) || least.ns < kRestLeadNs) return 0;
  const std::uint64_t by_time_ns = memory.stretch_since_ns + least.ns;
  if (least.launches < kFewLaunches) return by_time_ns;
  if (memory.launched < least.launches / kPacePart) return std::max(by_time_ns, now_ns + least.ns / 2);
  const auto left = static_cast<double>(least.launches - std::min(memory.launched, least.launches));
  const double each_ns = static_cast<double>(now_ns - memory.stretch_since_ns) / static_cast<double>(memory.launched);
  return now_ns + static_cast<std::uint64_t>(left * each_ns);
}

std::uint64_t AskAgainNs(const WaitMemory& memory, std::uint64_t at_ns, std::uint64_t now_ns) {
  if (LeastOf(memory).launches < kFewLaunches) return at_ns;
  return std::min(at_ns, now_ns + std::max((at_ns - now_ns) / 2, kAskAgainNs));
}

}  // namespace xschedd::policy
