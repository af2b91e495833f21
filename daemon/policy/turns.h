// Turns of background groups and sharers. Where a device limits how many run at a time (filling.h), each runs for
// turn_ms, then goes to the back of the queue if another waits. A sharer that becomes idle gives its turn back at once,
// another after twice linger_us; one that is held for a more important client keeps it. A turn belongs to a group and
// covers all its devices. While anybody is kept to a share, turns are half as long: shares must be right within a
// second, and turns of 100 ms miss them by 5 points. Thread rule: pure functions.
#pragma once

#include "daemon/policy/types.h"

namespace xschedd::policy {

class Turns {
 public:
  Turns(std::uint32_t turn_ms, bool anybody_shares, std::uint64_t now_ns)
      : turn_ns_(turn_ms * kNsPerMs / (anybody_shares ? 2 : 1)), now_ns_(now_ns) {}

  // Before groups are ordered: ends a turn that is over.
  void Expire(GroupMemory& memory) const;

  void NoteOpen(GroupMemory& memory) const;
  // The group gives its turn back.
  void NoteIdle(GroupMemory& memory) const;
  // Another group waits for this one's turn to end.
  void NoteAwaited(const GroupMemory& memory, std::uint64_t& next_decision_ns) const;

 private:
  std::uint64_t turn_ns_;
  std::uint64_t now_ns_;
};

}  // namespace xschedd::policy
