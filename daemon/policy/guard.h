// The starvation guard: a group that has been busy and held for nearly a second is opened for its turn, whoever else is
// busy. An opening shorter than a turn does not count against it, so that a stream of short gaps cannot starve a group.
// Thread rule: pure functions.
#pragma once

#include "daemon/policy/types.h"

namespace xschedd::policy {

class Guard {
 public:
  Guard(std::uint32_t ms_per_s, std::uint64_t now_ns) : turn_ns_(ms_per_s * kNsPerMs), now_ns_(now_ns) {}

  // The group's turn is running.
  bool IsOpen(const GroupMemory& memory) const { return turn_ns_ != 0 && memory.guard_until_ns > now_ns_; }
  // The group, busy and held by the others' priority, has waited long enough for a turn.
  bool IsDue(const GroupMemory& memory) const;

  // Memory of a busy group for the next decision (an idle one has no case, and none of this memory). `next_look_ns` is
  // brought forward to when its case changes.
  // Held because it is another's turn: that wait neither starts its case nor ends it.
  void NoteWaiting(GroupMemory& memory) const;
  void NoteOpen(GroupMemory& memory) const;
  void NoteTurn(GroupMemory& memory, std::uint64_t& next_look_ns) const;
  void NoteHeld(GroupMemory& memory, std::uint64_t& next_look_ns) const;

 private:
  std::uint64_t DueNs(const GroupMemory& memory) const { return memory.starved_since_ns + kNsPerS - turn_ns_; }

  std::uint64_t turn_ns_;
  std::uint64_t now_ns_;
};

}  // namespace xschedd::policy
