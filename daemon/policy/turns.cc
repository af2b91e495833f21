#include "daemon/policy/turns.h"

#include <algorithm>

namespace xschedd::policy {

// A turn that ended while its group was idle counts as used until then, also if the group has work again by now. One
// that becomes idle in the last part has nothing in flight any more.
void Turns::Expire(GroupMemory& memory, std::uint64_t busy_since_ns, std::uint64_t idle_since_ns) const {
  const std::uint64_t ending_ns = EndingNs(memory);
  const bool has_ended = ending_ns != 0 && idle_since_ns + ending_ns >= EndOf(memory);
  if (now_ns_ < EndOf(memory) && !has_ended) return;
  const bool was_busy = busy_since_ns < EndOf(memory);
  memory.last_turn_ns = was_busy ? now_ns_ : std::max(idle_since_ns, memory.turn_since_ns);
  memory.turn_since_ns = memory.early_ns = 0;
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
  const std::uint64_t last_ns = EndOf(memory) - (ends_launches ? EndingNs(memory) : 0);
  const std::uint64_t next_ns = last_ns > now_ns_ ? last_ns : EndOf(memory);
  next_decision_ns = std::min(next_decision_ns, std::max(next_ns, now_ns_ + 1));
}

}  // namespace xschedd::policy
