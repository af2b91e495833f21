#include "daemon/policy/turns.h"

#include <algorithm>

namespace xschedd::policy {

void Turns::Expire(GroupMemory& memory, std::uint64_t used_until_ns) const {
  if (memory.turn_since_ns == 0 || now_ns_ - memory.turn_since_ns < turn_ns_) return;
  memory.last_turn_ns = std::max(used_until_ns, memory.turn_since_ns);
  memory.turn_since_ns = 0;
}

void Turns::NoteOpen(GroupMemory& memory) const {
  if (memory.turn_since_ns == 0) memory.turn_since_ns = now_ns_;
}

void Turns::NoteReturned(GroupMemory& memory) const {
  if (memory.turn_since_ns == 0) return;
  memory.turn_since_ns = 0;
  memory.last_turn_ns = now_ns_;
}

void Turns::NoteAwaited(const GroupMemory& memory, std::uint64_t& next_decision_ns) const {
  if (memory.turn_since_ns == 0) return;
  next_decision_ns = std::min(next_decision_ns, std::max(memory.turn_since_ns + turn_ns_, now_ns_ + 1));
}

}  // namespace xschedd::policy
