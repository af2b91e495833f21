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
// So a group with such launches may launch nothing in the last part of its turn if another waits, and its turn is over
// once those in flight have ended, but kMostOverNs too late at most. A group whose host waits for its launches is idle
// then, and goes on if as much work as before, but for an eighth, fits into the rest. Not if it has several devices.
//
// A launch may be longer than a turn, as a graph of a whole training step is. If two do not fit into a turn, one at a
// time is in flight while another group waits. A group owes what its turn lasted longer, and has a shorter one next
// time. Who owes a whole turn passes: another goes first that waits, or that owes fewer turns and has not paused for as
// long as launches end in. Turns that all who wait owe are forgotten, so that the one that owes fewest goes first. If
// the turn was over early, since nothing more fitted, the next one is longer by that, twice as long at most.
//
// A program that seldom works, as a notebook does, would wait for everybody's turn each time. So one that comes back to
// work after kEarlyAfterNs, while another has its turn, goes early: it interrupts that turn for kEarlyNs at most, and
// kEarlyApartNs after anybody did so last. It owes that, too, and can owe no more than half of a turn in this way. If
// it was idle when its turn would have been, an equal part of the time since is its own again. The interrupted turn is
// not prolonged, so that nobody waits for longer. Groups on several devices wait.
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

  // What a group does.
  struct Work {
    std::uint64_t busy_since_ns = kNever;  // since when it has work; kNever: it has none
    std::uint64_t idle_since_ns = 0;       // when it last became idle
    bool is_in_flight = false;             // launches of it have not ended
    bool is_cut = false;                   // others' work cuts them: the driver gives processes time slices
  };

  // Before groups are ordered.
  static void NoteBurst(GroupMemory& memory, const Work& work);
  // Ends the group's turn if it is over.
  void Expire(GroupMemory& memory, const Work& work) const;

  static constexpr std::uint64_t kEarlyAfterNs = 5 * kNsPerMs;
  static constexpr std::uint64_t kEarlyNs = 20 * kNsPerMs;
  static constexpr std::uint64_t kEarlyApartNs = 20 * kNsPerMs;

  // Until when a group that goes early may; in the past: its time is up.
  std::uint64_t EarlyUntil(const GroupMemory& memory) const {
    const auto left_ns = static_cast<std::uint64_t>(HalfTurn() - OffNextTurn(memory));
    return memory.early_since_ns + std::min(kEarlyNs, left_ns);
  }
  // Whether a group that was idle from `idle_since_ns` to `busy_since_ns`, and has work since, may go early. One that
  // has had the device since then, or has come since, waits like the others. One that went early last need not have
  // been idle for long: requests come at any time. `equals`: the groups that take turns with it, and itself.
  bool MayGoEarly(const GroupMemory& memory, std::uint32_t equals, const Work& work) const {
    return OwedNs(memory, equals, work) < HalfTurn() &&
           (memory.was_early || work.busy_since_ns >= work.idle_since_ns + kEarlyAfterNs) &&
           work.busy_since_ns > std::max(memory.last_turn_ns, memory.had_device_ns);
  }
  void NoteEarly(GroupMemory& memory, std::uint32_t equals, const Work& work) const;
  void NoteEarlyOver(GroupMemory& memory, bool is_idle) const;

  // How many whole turns a group owes: it lets another that waits go first so often, which NotePassed notes each time.
  // `equals`: as above.
  std::uint32_t TurnsOwed(const GroupMemory& memory, std::uint32_t equals, const Work& work) const {
    const std::int64_t owed_ns = OwedNs(memory, equals, work);
    return owed_ns <= 0 ? 0 : static_cast<std::uint32_t>(owed_ns / TurnNs());
  }
  void Forgive(GroupMemory& memory, std::uint32_t turns) const { memory.owed_ns -= turns * TurnNs(); }
  void NotePassed(GroupMemory& memory, std::uint32_t equals, const Work& work) const;

  // How long the group's recent launches took, on average; 0: unknown.
  static std::uint64_t LaunchNs(const GroupMemory& memory) {
    return memory.launched == 0 ? 0 : memory.ran_ns / memory.launched;
  }
  // Adds to them.
  static void CountLaunches(GroupMemory& memory, std::uint64_t launched, std::uint64_t ran_ns);
  // Whether a turn has no room for two of its launches.
  bool IsLongForTurn(const GroupMemory& memory) const { return 2 * LaunchNs(memory) > turn_ns_; }
  // How long its launches in flight take, if that is long; half of its turn at most. Else 0.
  std::uint64_t EndingNs(const GroupMemory& memory) const;

  void NoteOpen(GroupMemory& memory) const;
  // The group gives its turn back.
  void NoteReturned(GroupMemory& memory) const;
  // The one that lent it its turn has work again. Its own turn, which would have begun then, has not.
  void NoteReclaimed(GroupMemory& memory) const;
  // Whether it is held in its turn, for a more important one or one that goes early.
  void NoteHeld(GroupMemory& memory, bool is_held) const;
  // Another group waits for this one's turn to end, and the last part has begun.
  void NoteEnding(GroupMemory& memory) const;
  // In which it may launch nothing, unless it has been idle in it: then nothing was in flight, and it may go on.
  bool IsEnding(const GroupMemory& memory, const Work& work) const;
  // Another group waits for this one's turn to end. `ends_launches`: NoteEnding applies.
  void NoteAwaited(const GroupMemory& memory, bool ends_launches, const Work& work,
                   std::uint64_t& next_decision_ns) const;

 private:
  static constexpr std::uint64_t kLongLaunchNs = kNsPerMs;
  static constexpr std::uint64_t kRecentLaunchesNs = kNsPerS / 2;
  static constexpr std::uint64_t kFewestLaunches = 8;
  static constexpr std::uint64_t kMostOverNs = kNsPerS;
  static constexpr std::uint64_t kLookNs = kNsPerMs;  // at launches in flight whose end is awaited
  std::int64_t TurnNs() const { return static_cast<std::int64_t>(turn_ns_); }
  std::int64_t HalfTurn() const { return TurnNs() / 2; }
  // What counts of what it owes.
  std::int64_t OwedNs(const GroupMemory& memory, std::uint32_t equals, const Work& work) const;
  bool IsOver(const GroupMemory& memory, const Work& work) const;
  // Of a turn that is over.
  std::uint64_t HadNs(const GroupMemory& memory, const Work& work) const;
  static void EndTurn(GroupMemory& memory);
  bool WasIdleInLastPart(const GroupMemory& memory, const Work& work) const;
  // As much work as before fits into the rest.
  bool MayGoOn(const GroupMemory& memory, const Work& work) const;
  // By how much its turn is shorter.
  std::int64_t OffNextTurn(const GroupMemory& memory) const {
    return std::clamp(memory.owed_ns, -TurnNs(), HalfTurn());
  }
  std::uint64_t LengthOf(const GroupMemory& memory) const {
    return static_cast<std::uint64_t>(TurnNs() - OffNextTurn(memory));
  }
  std::uint64_t EndOf(const GroupMemory& memory) const { return memory.turn_since_ns + LengthOf(memory); }
  // When the part begins in which its launches end; EndOf: there is none.
  std::uint64_t LastPartOf(const GroupMemory& memory) const { return EndOf(memory) - EndingNs(memory); }

  std::uint64_t turn_ns_;
  std::uint64_t now_ns_;
};

}  // namespace xschedd::policy
