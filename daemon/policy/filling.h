// How many groups have their turn at a time on a device where that is left to the daemon: as few as fill it. A program
// that is bound by its host leaves the device idle for much of its turn, and two of them side by side get on nearly as
// fast as each alone. Two that fill it get on more slowly side by side, for the context switches.
//
//   - One at a time, until trials show that with more at a time they get on faster, by at least kWorthPercent. What
//     counts is how many launches each makes while they take turns. Its GPU time would not tell: between two markers of
//     such a program the device idles as well (docs/explanation/shim.md, GPU time).
//   - A block is as long as a turn of each of the groups. A pair is two neighbouring ones, with what is in force and
//     with what is tried; a trial is kPairs of them, or fewer if its outcome is not close. Each group gives a logarithm
//     of how much faster it made launches in all blocks of the one kind than in those of the other. The gain is their
//     mean, so that what some lose counts as much as what others gain. Side by side the driver divides the device, and
//     favours long kernels: on an H200 such a program got on twice as fast with two at a time, and a training of graph
//     networks lost four tenths (docs/results/h200-levers-e82226ac-dirty-aside.md, embed-three). So a gain counts only
//     up to kAhead times what the group that gains least has.
//   - Who shares its turn matters, too. A program that mostly copies loses nothing beside others, nor do they, but two
//     that compute do. So a group may *join* the turns of all others, instead of having its own, if none of them loses
//     more than kMostLost. If no more are allowed at a time, it joins in the place of one that has its turn. This is
//     not tried for one that got on no faster with one more at a time.
//   - A round has trials of one more, one fewer, and of each group's joining. They follow one another after
//     kFirstWaitNs. If another number is better than the one in force, it is from then on, else the best of those that
//     join, if any is better; and a new round begins. Else the next round begins later: for each trial kShortestWaitNs,
//     and twice as long each time nothing changes, up to kLongestWaitNs. All times here are those in which groups take
//     turns.
//   - Other groups count once they have taken turns for kOthersLastNs: a group that tries something (benefit.h) changes
//     who takes turns for a moment. If they come during a search, it begins anew after kInterruptedNs, so that groups
//     that come and go cost a bounded part in trials. The groups before them find their number again if they come back.
//     Who joins does so beside any others, until a trial shows that it should not.
//   - Each further group at a time delays a more important one by kAnotherNs whenever that one has work after a pause
//     in which they were let in: their work in flight has to end, and the device switches. So there are no more at a
//     time than its tolerance allows (MostAtATime).
//   - Groups on several devices have turns like others, but do not count: they may wait for their other devices.
//
// By lying about its launches a client can only bring about that several have their turn at a time, or that it joins,
// within that bound, and as long as no such change costs another group much more than a quarter.
// Thread rule: pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "daemon/policy/types.h"

namespace xschedd::policy {

class Filling {
 public:
  static constexpr std::uint32_t kMostAtATime = 8;
  static constexpr std::uint32_t kPairs = 16;
  // Fewer if the gain is so far, a logarithm, from what is worth it; and fewer still if it is worse than that, since
  // then the trial costs the groups.
  static constexpr std::uint32_t kFewerPairs = 8;
  static constexpr double kNotClose = 0.05;
  static constexpr std::uint32_t kFewestPairs = 4;
  static constexpr double kPlain = 0.2;
  static constexpr double kWorthPercent = 10;
  static constexpr double kStillWorthPercent = 5;  // of one that is in force
  static constexpr double kAhead = 0.4;            // a logarithm: 1.5 times
  static constexpr double kMostLost = 0.3;         // likewise: a quarter
  static constexpr std::uint64_t kFirstWaitNs = kNsPerS / 2;
  static constexpr std::uint64_t kShortestWaitNs = 16 * kNsPerS;
  static constexpr std::uint64_t kLongestWaitNs = 64 * kNsPerS;
  static constexpr std::uint64_t kOthersLastNs = kNsPerS;
  static constexpr std::uint64_t kInterruptedNs = 10 * kNsPerS;
  static constexpr std::uint64_t kLongestBlockNs = 4 * kNsPerS;
  static constexpr std::uint64_t kSettleNs = 20 * kNsPerMs;  // of a block, not counted: clients change their slices
  // On an H100 (driver 580.159.04) requests waited 0.2 ms longer with two groups in turn than with one
  // (docs/explanation/performance.md).
  static constexpr std::uint64_t kAnotherNs = 200 * kNsPerUs;

  Filling() = default;
  Filling(std::uint32_t turn_ms, std::uint64_t now_ns) : turn_ns_(turn_ms * kNsPerMs), now_ns_(now_ns) {}

  // The groups that take turns on a device.
  struct Takers {
    std::uint32_t count = 0;                       // of the highest rank of those with recent work
    std::uint32_t joiners = 0;                     // of these
    std::uint64_t who = 0;                         // a hash of their ids
    std::uint32_t most = 1;                        // at a time, by the tolerance of those above (MostAtATime)
    std::array<std::uint64_t, 2> candidates = {};  // FillingMemory's
    bool compete = false;                          // more than one has work, and one is open
  };

  // 1. Before admission: accounts for the time since the last decision. Returns in which of GroupMemory::turn_launches
  // the launches since then belong, if in any.
  std::optional<std::size_t> Advance(FillingMemory& memory) const;
  // How much faster groups have got on in a trial with more of them at a time: logarithms, over all groups.
  struct Gain {
    double mean = 0;
    double least = 0;
  };
  // 2. Whether both blocks of a pair are over. `gain`: so far in this trial; nullopt: no group had launches in both.
  bool IsPairOver(const FillingMemory& memory) const;
  void EndPair(FillingMemory& memory, const std::optional<Gain>& gain) const;
  // The best of a round that is over, which is in force from now on; its number is 0: nothing changes. The joining of
  // its group is to be changed.
  [[nodiscard]] FillingMemory::Trial EndRound(FillingMemory& memory) const;
  // 3. Whether a pair is due, which Begin begins. Of the first one in a trial the groups' turn_launches must be 0 then.
  bool IsDue(const FillingMemory& memory) const;
  void Begin(FillingMemory& memory) const;
  // 4. How many groups have their turn at a time now. All decisions of one instant give the same answer.
  std::uint32_t AtATime(FillingMemory& memory) const;
  // Whether the group joins others' turns, as AtATime has found. `joins`: what is in force for it.
  static bool Joins(const FillingMemory& memory, std::uint64_t group, bool joins) {
    return memory.may_join && joins != (memory.toggled == group);
  }
  // Whether the pair that was over has ended a trial of one more at a time.
  static bool HasTriedMore(const FillingMemory& memory) {
    return memory.pairs == 0 && memory.trial.group == 0 && !memory.trial.is_fewer;
  }
  // Whether a group's joining has yet to be tried in this round.
  static bool IsUntried(const FillingMemory& memory, std::uint64_t group) { return group > memory.tried_group; }
  // 5. After admission. Brings `next_decision_ns` forward to the next pair or the end of a block.
  void Note(FillingMemory& memory, const Takers& takers, std::uint64_t& next_decision_ns) const;

  // How many there may be at a time below a group that works for `spell_ns` between two pauses in which they are let
  // in.
  static std::uint32_t MostAtATime(std::uint32_t tolerance_percent, std::uint64_t spell_ns);

 private:
  std::uint64_t BlockNs(const FillingMemory& memory) const;
  static FillingMemory::Trial NextTrial(const FillingMemory& memory);
  static bool MayJoin(const FillingMemory& memory);

  std::uint64_t turn_ns_ = 0;
  std::uint64_t now_ns_ = 0;
};

}  // namespace xschedd::policy
