#include "daemon/policy/turns.h"

#include <algorithm>
#include <utility>

namespace xschedd::policy {

void Turns::NoteBurst(GroupMemory& memory, const Work& work) {
  const std::uint64_t busy_since_ns = work.busy_since_ns == kNever ? 0 : work.busy_since_ns;
  const std::uint64_t before_ns = std::exchange(memory.burst_since_ns, busy_since_ns);
  if (before_ns == memory.burst_since_ns || before_ns == 0) return;
  const std::uint64_t from_ns = std::max(before_ns, memory.turn_since_ns);
  if (work.idle_since_ns > from_ns) memory.burst_ns = work.idle_since_ns - from_ns;
}

// While it was held, another may have had the device, or its own launches: where these are not cut, their GPU time
// tells.
std::uint64_t Turns::HadNs(const GroupMemory& memory, const Work& work) const {
  const std::uint64_t lasted_ns = memory.last_turn_ns - memory.turn_since_ns;
  std::uint64_t held_ns = memory.turn_held_ns;
  if (memory.held_since_ns != 0) held_ns += now_ns_ - memory.held_since_ns;
  const std::uint64_t open_ns = lasted_ns - std::min(lasted_ns, held_ns);
  const std::uint64_t used_ns = work.is_cut ? open_ns : std::max(open_ns, memory.turn_ran_ns);
  return std::min(lasted_ns, std::max(used_ns, LengthOf(memory)));
}

// A turn that ended while its group was idle counts as used until then, also if the group has work again by now. One
// that its group lent counts as a whole one.
void Turns::Expire(GroupMemory& memory, const Work& work) const {
  if (!IsOver(memory, work)) return;
  const bool was_busy = work.busy_since_ns < EndOf(memory);
  const bool ended_launches = memory.ending_since_ns != 0 || WasIdleInLastPart(memory, work);
  memory.last_turn_ns = was_busy ? now_ns_ : std::max(work.idle_since_ns, memory.turn_since_ns);
  const std::uint64_t had_ns = ended_launches ? HadNs(memory, work) : LengthOf(memory);
  const std::int64_t owed_ns = memory.owed_ns + static_cast<std::int64_t>(had_ns) - TurnNs();
  memory.owed_ns = std::clamp(owed_ns, -TurnNs(), static_cast<std::int64_t>(kMostOverNs));
  EndTurn(memory);
}

bool Turns::WasIdleInLastPart(const GroupMemory& memory, const Work& work) const {
  const std::uint64_t last_part_ns = LastPartOf(memory);
  return last_part_ns != EndOf(memory) && work.idle_since_ns >= last_part_ns;
}

bool Turns::MayGoOn(const GroupMemory& memory, const Work& work) const {
  const std::uint64_t burst_ns = memory.burst_ns - memory.burst_ns / 8;
  return burst_ns != 0 && std::min(work.busy_since_ns, now_ns_) + burst_ns <= EndOf(memory);
}

bool Turns::IsOver(const GroupMemory& memory, const Work& work) const {
  const std::uint64_t end_ns = EndOf(memory);
  if (WasIdleInLastPart(memory, work)) {
    if (!MayGoOn(memory, work)) return true;
    if (now_ns_ < end_ns) return false;
  }
  if (memory.ending_since_ns == 0) return now_ns_ >= end_ns;
  // An earlier decision has shut the gate.
  const bool have_ended = !work.is_in_flight && memory.ending_since_ns < now_ns_;
  return have_ended || now_ns_ >= end_ns + kMostOverNs;
}

std::int64_t Turns::OwedNs(const GroupMemory& memory, std::uint32_t equals, const Work& work) const {
  const std::uint64_t from_ns = std::max(memory.had_device_ns, memory.last_turn_ns + equals * turn_ns_);
  const std::uint64_t until_ns = std::min(now_ns_, work.busy_since_ns);
  if (until_ns <= from_ns || equals == 0 || memory.owed_ns <= 0) return memory.owed_ns;
  return std::max<std::int64_t>(0, memory.owed_ns - static_cast<std::int64_t>((until_ns - from_ns) / equals));
}

void Turns::NoteEarly(GroupMemory& memory, std::uint32_t equals, const Work& work) const {
  if (memory.early_since_ns != 0) return;
  memory.owed_ns = OwedNs(memory, equals, work);
  memory.early_since_ns = now_ns_;
}

void Turns::NoteEarlyOver(GroupMemory& memory, bool is_idle) const {
  memory.owed_ns += static_cast<std::int64_t>(now_ns_ - memory.early_since_ns);
  memory.had_device_ns = now_ns_;
  memory.early_since_ns = 0;
  memory.was_early = is_idle;
}

// Behind the one whose turn has just ended. Who passes is not starved (guard.h).
void Turns::NotePassed(GroupMemory& memory, std::uint32_t equals, const Work& work) const {
  memory.owed_ns = OwedNs(memory, equals, work) - TurnNs();
  memory.last_turn_ns = now_ns_ + 1;
  memory.starved_since_ns = memory.had_ns = 0;
}

void Turns::CountLaunches(GroupMemory& memory, std::uint64_t launched, std::uint64_t ran_ns) {
  memory.launched += launched;
  memory.ran_ns += ran_ns;
  if (memory.turn_since_ns != 0) memory.turn_ran_ns += ran_ns;
  // Those in flight are counted, and their time is not yet: of few launches that would be a large part.
  while (memory.ran_ns >= kRecentLaunchesNs && memory.launched >= kFewestLaunches) {
    memory.launched /= 2;
    memory.ran_ns /= 2;
  }
}

// A group alone in its turn has two such launches in flight, of which one is half done on average.
std::uint64_t Turns::EndingNs(const GroupMemory& memory) const {
  const std::uint64_t launch_ns = LaunchNs(memory);
  return launch_ns < kLongLaunchNs ? 0 : std::min(launch_ns * 3 / 2, LengthOf(memory) / 2);
}

void Turns::NoteOpen(GroupMemory& memory) const {
  if (memory.turn_since_ns == 0) memory.turn_since_ns = now_ns_;
  memory.was_early = false;
}

void Turns::EndTurn(GroupMemory& memory) {
  memory.turn_since_ns = memory.ending_since_ns = memory.turn_ran_ns = 0;
  memory.turn_held_ns = memory.held_since_ns = 0;
}

void Turns::NoteReclaimed(GroupMemory& memory) const {
  if (memory.turn_since_ns == 0) return;
  EndTurn(memory);
  memory.had_device_ns = now_ns_;
}

void Turns::NoteReturned(GroupMemory& memory) const {
  if (memory.turn_since_ns == 0) return;
  EndTurn(memory);
  memory.last_turn_ns = now_ns_;
}

void Turns::NoteHeld(GroupMemory& memory, bool is_held) const {
  if (memory.turn_since_ns == 0 || is_held == (memory.held_since_ns != 0)) return;
  if (!is_held) memory.turn_held_ns += now_ns_ - memory.held_since_ns;
  memory.held_since_ns = is_held ? now_ns_ : 0;
}

void Turns::NoteEnding(GroupMemory& memory) const {
  const std::uint64_t last_part_ns = LastPartOf(memory);
  const bool is_last = memory.turn_since_ns != 0 && last_part_ns != EndOf(memory) && now_ns_ >= last_part_ns;
  if (!is_last) memory.ending_since_ns = 0;
  if (is_last && memory.ending_since_ns == 0) memory.ending_since_ns = now_ns_;
}

bool Turns::IsEnding(const GroupMemory& memory, const Work& work) const {
  return memory.ending_since_ns != 0 && (now_ns_ >= EndOf(memory) || !WasIdleInLastPart(memory, work));
}

void Turns::NoteAwaited(const GroupMemory& memory, bool ends_launches, const Work& work,
                        std::uint64_t& next_decision_ns) const {
  if (memory.turn_since_ns == 0) return;
  const std::uint64_t last_ns = ends_launches ? LastPartOf(memory) : EndOf(memory);
  std::uint64_t next_ns = last_ns > now_ns_ ? last_ns : EndOf(memory);
  if (IsEnding(memory, work)) next_ns = now_ns_ + kLookNs;
  next_decision_ns = std::min(next_decision_ns, std::max(next_ns, now_ns_ + 1));
}

}  // namespace xschedd::policy
