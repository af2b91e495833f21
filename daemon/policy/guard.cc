#include "daemon/policy/guard.h"

#include <algorithm>

namespace xschedd::policy {

bool Guard::IsDue(const GroupMemory& memory) const {
  return turn_ns_ != 0 && memory.starved_since_ns != 0 && DueNs(memory) <= now_ns_;
}

void Guard::NoteWaiting(GroupMemory& memory) const {
  if (memory.open_since_ns != 0 && now_ns_ - memory.open_since_ns >= turn_ns_) memory.starved_since_ns = 0;
  memory.open_since_ns = 0;
}

// A turn goes on meanwhile: whoever is held again before its end has the rest of it.
void Guard::NoteOpen(GroupMemory& memory) const {
  if (memory.open_since_ns == 0) memory.open_since_ns = now_ns_;
}

void Guard::NoteTurn(GroupMemory& memory, std::uint64_t& next_look_ns) const {
  if (memory.guard_until_ns <= now_ns_) memory.guard_until_ns = now_ns_ + turn_ns_;
  memory.open_since_ns = 0;
  memory.starved_since_ns = memory.guard_until_ns;  // the next second begins when the turn ends
  next_look_ns = std::min(next_look_ns, memory.guard_until_ns);
}

void Guard::NoteHeld(GroupMemory& memory, std::uint64_t& next_look_ns) const {
  const bool had_its_share = memory.open_since_ns != 0 && now_ns_ - memory.open_since_ns >= turn_ns_;
  if (memory.starved_since_ns == 0 || had_its_share) memory.starved_since_ns = now_ns_;
  memory.open_since_ns = 0;
  memory.guard_until_ns = 0;
  // One that is due already waits for the end of another's guard turn, which is looked at anyway.
  if (turn_ns_ != 0 && DueNs(memory) > now_ns_) next_look_ns = std::min(next_look_ns, DueNs(memory));
}

}  // namespace xschedd::policy
