#include "daemon/policy/turns.h"

#include <algorithm>

namespace xschedd::policy {

// A turn that ended while its group was idle counts as used until then, also if the group has work again by now.
void Turns::Expire(GroupMemory& memory, std::uint64_t busy_since_ns, std::uint64_t idle_since_ns) const {
  if (now_ns_ < EndOf(memory)) return;
  const bool was_busy = busy_since_ns < EndOf(memory);
  memory.last_turn_ns = was_busy ? now_ns_ : std::max(idle_since_ns, memory.turn_since_ns);
  memory.turn_since_ns = memory.early_ns = 0;
}

void Turns::NoteEarlyOver(GroupMemory& memory, bool is_idle) const {
  memory.early_ns += std::min(kEarlyNs, now_ns_ - memory.early_since_ns);
  memory.had_device_ns = now_ns_;
  memory.early_since_ns = 0;
  memory.was_early = is_idle;
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

void Turns::NoteAwaited(const GroupMemory& memory, std::uint64_t& next_decision_ns) const {
  if (memory.turn_since_ns == 0) return;
  next_decision_ns = std::min(next_decision_ns, std::max(EndOf(memory), now_ns_ + 1));
}

}  // namespace xschedd::policy
