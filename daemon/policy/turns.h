// Turns of background groups and sharers. Where a device limits how many run at a time (filling.h), each runs for
// turn_ms, then goes to the back of the queue if another waits. A turn belongs to a group and covers all its devices.
//
//   held for a more important client    it keeps its turn
//   idle for up to twice linger_us      nobody else runs: handing over at every synchronisation would cost more
//   idle for longer                     it lends its turn to the next one until it has work again: a training that
//                                       pauses for a millisecond in each step would otherwise have far less time than
//                                       a neighbour that does not pause. To one with long launches, only once it has
//                                       been idle for as long as those would take
//   a sharer                            gives its turn back at once: its share is kept by its GPU time
//
// What is in flight when a gate shuts runs on. Kernels of many milliseconds would then take turns with the next
// group's, in short time slices: on an H200 that group had a fourth of its part (docs/results/h200-levers-e82226ac.md).
// So a group with such launches may launch nothing in the last part of its turn, in which those in flight end, if
// another waits. Once it is idle they have ended; then its turn is over, unless as much work as before that fits into
// the rest, but for an eighth. Not if it has several devices.
//
// A program that seldom works, as a notebook does, would wait for everybody's turn each time. So one that comes back to
// work after kEarlyAfterNs, while another has its turn, goes early: it interrupts that turn for kEarlyNs at most, and
// kEarlyApartNs after anybody did so last. That comes off its own next turn, of which it can have no more than half in
// this way. If it was idle when its turn would have been, an equal part of the time since is its own again. The
// interrupted turn is not prolonged, so that nobody waits for longer. Groups on several devices wait.
//
// While anybody is kept to a share, turns are half as long: shares must be right within a second, and turns of 100 ms
// miss them by 5 points. Thread rule: pure functions.
#pragma once

#include <algorithm>

#include "daemon/policy/types.h"

namespace xschedd::policy {

class Turns {
 public:
  Turns(std::uint32_t turn_ms, bool anybody_shares, std::uint64_t now_ns)
      : turn_ns_(turn_ms * kNsPerMs / (anybody_shares ? 2 : 1)), now_ns_(now_ns) {}

  // Before groups are ordered. `busy_since_ns`: since when the group has work; kNever: it has none. `idle_since_ns`:
  // when it last became idle.
  static void NoteBurst(GroupMemory& memory, std::uint64_t busy_since_ns, std::uint64_t idle_since_ns);
  // Ends the group's turn if it is over.
  void Expire(GroupMemory& memory, std::uint64_t busy_since_ns, std::uint64_t idle_since_ns) const;

  static constexpr std::uint64_t kEarlyAfterNs = 5 * kNsPerMs;
  static constexpr std::uint64_t kEarlyNs = 20 * kNsPerMs;
  static constexpr std::uint64_t kEarlyApartNs = 20 * kNsPerMs;

  // Until when a group that goes early may; in the past: its time is up.
  std::uint64_t EarlyUntil(const GroupMemory& memory) const {
    return memory.early_since_ns + std::min(kEarlyNs, turn_ns_ / 2 - OffNextTurn(memory));
  }
  // Whether a group that was idle from `idle_since_ns` to `busy_since_ns`, and has work since, may go early. One that
  // has had the device since then, or has come since, waits like the others. One that went early last need not have
  // been idle for long: requests come at any time. `equals`: the groups that take turns with it, and itself.
  bool MayGoEarly(const GroupMemory& memory, std::uint32_t equals, std::uint64_t idle_since_ns,
                  std::uint64_t busy_since_ns) const {
    return EarlyNs(memory, equals) < turn_ns_ / 2 &&
           (memory.was_early || busy_since_ns >= idle_since_ns + kEarlyAfterNs) &&
           busy_since_ns > std::max(memory.last_turn_ns, memory.had_device_ns);
  }
  void NoteEarly(GroupMemory& memory, std::uint32_t equals) const;
  void NoteEarlyOver(GroupMemory& memory, bool is_idle) const;

  // Adds to the group's recent launches.
  static void CountLaunches(GroupMemory& memory, std::uint64_t launched, std::uint64_t ran_ns);
  // How long its launches in flight take, if that is long; half of its turn at most. Else 0.
  std::uint64_t EndingNs(const GroupMemory& memory) const;
  // It has its turn, and all that it may still do in it is to end what is in flight. If it has been idle in this last
  // part, nothing is: then it may go on until the turn is over.
  bool IsEnding(const GroupMemory& memory, std::uint64_t idle_since_ns) const {
    const std::uint64_t last_part_ns = LastPartOf(memory);
    return memory.turn_since_ns != 0 && now_ns_ >= last_part_ns && now_ns_ < EndOf(memory) &&
           idle_since_ns < last_part_ns;
  }

  void NoteOpen(GroupMemory& memory) const;
  // The group gives its turn back.
  void NoteReturned(GroupMemory& memory) const;
  // The one that lent it its turn has work again. Its own turn, which would have begun then, has not.
  void NoteReclaimed(GroupMemory& memory) const;
  // Another group waits for this one's turn to end. `ends_launches`: it may launch nothing in the last part.
  void NoteAwaited(const GroupMemory& memory, bool ends_launches, std::uint64_t& next_decision_ns) const;

 private:
  static constexpr std::uint64_t kLongLaunchNs = kNsPerMs;
  static constexpr std::uint64_t kRecentLaunchesNs = kNsPerS / 2;
  // What counts of the time for which it went early.
  std::uint64_t EarlyNs(const GroupMemory& memory, std::uint32_t equals) const;
  bool IsOver(const GroupMemory& memory, std::uint64_t busy_since_ns, std::uint64_t idle_since_ns) const;
  // By how much its turn is shorter.
  std::uint64_t OffNextTurn(const GroupMemory& memory) const { return std::min(turn_ns_ / 2, memory.early_ns); }
  std::uint64_t LengthOf(const GroupMemory& memory) const { return turn_ns_ - OffNextTurn(memory); }
  std::uint64_t EndOf(const GroupMemory& memory) const { return memory.turn_since_ns + LengthOf(memory); }
  // When the part begins in which its launches end; EndOf: there is none.
  std::uint64_t LastPartOf(const GroupMemory& memory) const { return EndOf(memory) - EndingNs(memory); }

  std::uint64_t turn_ns_;
  std::uint64_t now_ns_;
};

}  // namespace xschedd::policy
