#include "daemon/policy/turns.h"

#include <algorithm>
#include <utility>

namespace xschedd::policy {

void Turns::NoteBurst(GroupMemory& memory, std::uint64_t busy_since_ns, std::uint64_t idle_since_ns) {
  const std::uint64_t before_ns = std::exchange(memory.burst_since_ns, busy_since_ns == kNever ? 0 : busy_since_ns);
  if (before_ns == memory.burst_since_ns || before_ns == 0) return;
  const std::uint64_t from_ns = std::max(before_ns, memory.turn_since_ns);
  if (idle_since_ns > from_ns) memory.burst_ns = idle_since_ns - from_ns;
}

// A turn that ended while its group was idle counts as used until then, also if the group has work again by now.
void Turns::Expire(GroupMemory& memory, std::uint64_t busy_since_ns, std::uint64_t idle_since_ns) const {
  if (!IsOver(memory, busy_since_ns, idle_since_ns)) return;
  const bool was_busy = busy_since_ns < EndOf(memory);
  memory.last_turn_ns = was_busy ? now_ns_ : std::max(idle_since_ns, memory.turn_since_ns);
  memory.turn_since_ns = memory.early_ns = 0;
}

bool Turns::IsOver(const GroupMemory& memory, std::uint64_t busy_since_ns, std::uint64_t idle_since_ns) const {
  if (now_ns_ >= EndOf(memory)) return true;
  const std::uint64_t last_part_ns = LastPartOf(memory);
  if (last_part_ns == EndOf(memory) || idle_since_ns < last_part_ns) return false;
  const bool fits = std::min(busy_since_ns, now_ns_) + memory.burst_ns - memory.burst_ns / 8 <= EndOf(memory);
  return memory.burst_ns == 0 || !fits;
}

std::uint64_t Turns::EarlyNs(const GroupMemory& memory, std::uint32_t equals) const {
  const std::uint64_t from_ns = std::max(memory.had_device_ns, memory.last_turn_ns + equals * turn_ns_);
  if (now_ns_ <= from_ns || equals == 0) return memory.early_ns;
  return memory.early_ns - std::min(memory.early_ns, (now_ns_ - from_ns) / equals);
}

void Turns::NoteEarly(GroupMemory& memory, std::uint32_t equals) const {
  if (memory.early_since_ns != 0) return;
  memory.early_ns = EarlyNs(memory, equals);
  memory.early_since_ns = now_ns_;
}

void Turns::NoteEarlyOver(GroupMemory& memory, bool is_idle) const {
  memory.early_ns += now_ns_ - memory.early_since_ns;
  memory.had_device_ns = now_ns_;
  memory.early_since_ns = 0;
  memory.was_early = is_idle;
}

void Turns::CountLaunches(GroupMemory& memory, std::uint64_t launched, std::uint64_t ran_ns) {
  memory.launched += launched;
  memory.ran_ns += ran_ns;
  while (memory.ran_ns >= kRecentLaunchesNs) {
    memory.launched /= 2;
    memory.ran_ns /= 2;
  }
}

// A group alone in its turn has two such launches in flight, of which one is half done on average.
std::uint64_t Turns::EndingNs(const GroupMemory& memory) const {
  if (memory.ran_ns < memory.launched * kLongLaunchNs || memory.launched == 0) return 0;
  return std::min(memory.ran_ns / memory.launched * 3 / 2, LengthOf(memory) / 2);
}

void Turns::NoteOpen(GroupMemory& memory) const {
  if (memory.turn_since_ns == 0) memory.turn_since_ns = now_ns_;
  memory.was_early = false;
}

void Turns::NoteReclaimed(GroupMemory& memory) const {
  if (memory.turn_since_ns == 0) return;
  memory.turn_since_ns = 0;
  memory.had_device_ns = now_ns_;
}

void Turns::NoteReturned(GroupMemory& memory) const {
  if (memory.turn_since_ns == 0) return;
  memory.turn_since_ns = 0;
  memory.last_turn_ns = now_ns_;
}

void Turns::NoteAwaited(const GroupMemory& memory, bool ends_launches, std::uint64_t& next_decision_ns) const {
  if (memory.turn_since_ns == 0) return;
  const std::uint64_t last_ns = ends_launches ? LastPartOf(memory) : EndOf(memory);
  const std::uint64_t next_ns = last_ns > now_ns_ ? last_ns : EndOf(memory);
  next_decision_ns = std::min(next_decision_ns, std::max(next_ns, now_ns_ + 1));
}

}  // namespace xschedd::policy
