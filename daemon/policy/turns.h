// Turns of background groups and sharers. Where a device limits how many run at a time (filling.h), each runs for
// turn_ms, then goes to the back of the queue if another waits. A turn belongs to a group and covers all its devices.
//
//   held for a more important client    it keeps its turn
//   idle for up to twice linger_us      nobody else runs: handing over at every synchronisation would cost more
//   idle for longer                     it lends its turn to the next one until it has work again: a training that
//                                       pauses for a millisecond in each step would otherwise have far less time than
//                                       a neighbour that does not pause
//   a sharer                            gives its turn back at once: its share is kept by its GPU time
//
// While anybody is kept to a share, turns are half as long: shares must be right within a second, and turns of 100 ms
// miss them by 5 points. Thread rule: pure functions.
#pragma once

#include "daemon/policy/types.h"

namespace xschedd::policy {

class Turns {
 public:
  Turns(std::uint32_t turn_ms, bool anybody_shares, std::uint64_t now_ns)
      : turn_ns_(turn_ms * kNsPerMs / (anybody_shares ? 2 : 1)), now_ns_(now_ns) {}

  // Before groups are ordered: ends a turn that is over. `used_until_ns`: now, or when the group became idle.
  void Expire(GroupMemory& memory, std::uint64_t used_until_ns) const;

  void NoteOpen(GroupMemory& memory) const;
  // The group gives its turn back.
  void NoteReturned(GroupMemory& memory) const;
  // The one that lent it its turn has work again. Its own turn, which would have begun then, has not.
  static void NoteReclaimed(GroupMemory& memory) { memory.turn_since_ns = 0; }
  // Another group waits for this one's turn to end.
  void NoteAwaited(const GroupMemory& memory, std::uint64_t& next_decision_ns) const;

 private:
  std::uint64_t turn_ns_;
  std::uint64_t now_ns_;
};

}  // namespace xschedd::policy
