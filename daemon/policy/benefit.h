// When others should be held for an important group, found out by trying: now and then they run beside it for a moment,
// or are held only while its host waits for the device, and how fast it gets on is compared with its pace while they
// are held.
//
//   - Only while it waits: a host that launches runs ahead of the device, and makes up for what others delayed. What
//     counts is that the device is its own when the host waits for it, so what others may have in flight then is
//     bounded (AllowanceOf). Only for one whose client says when it waits, and does not do so nearly all the time
//     (kMostlyWaits): that would be no other mode than held.
//   - Waits come in rows: a token of a language model ends with three in a millisecond, and then none for ten. Others
//     stay held for kLingerNs behind a wait, unless the next one seldom follows so soon (kFollowed) at its place in the
//     row.
//   - How fast it gets on is its busy time per launch: for requests of one kind their length, for a program that
//     launches all the time the inverse of its rate. Of a host that says when it waits, only the waits are compared:
//     its own time, which others have no part in, is taken for the same in both modes, since the speed of a processor
//     changes by more than what is to be found. If the whole time is slower by far more than chance explains
//     (kSureErrors), that was wrong, and counts.
//   - Whoever asks waits for the host, too, while it prepares the next burst. The pauses between the bursts of a block
//     are time of the host as long as they add up to no more than a quarter of the work, and to no more than
//     kMostPauseNs more. In longer ones nobody asks for anything.
//   - With a deadline late is late and early is nothing: a burst counts as long as its deadline, less a reserve
//     (kDeadlineReserve), unless it takes longer.
//   - A block is some of its work in one mode, while somebody less important has work there: a few bursts, or a tenth
//     of a second of a long one. Two neighbouring blocks, one held and one of another mode, are a pair. Only the two of
//     a pair are compared: a core's speed, and what a program does, change by more than the tolerance within seconds.
//   - A pair says the logarithm of a ratio, the other mode to held. Two averages count: of all pairs, and of what is
//     outside twice the tolerance (the tail). Pairs follow one another until the mode is clear, kPairs at most.
//   - `free` comes first, then what costs the others more, until a mode is not too slow. Then the answer, the next
//     cheaper mode and `free` are looked at by turns: after kShortestWaitNs (kDearWaitNs where a look costs the group
//     much), and each time that the answer stays the same after twice as long, up to kLongestWaitNs.
//   - What others had in flight takes a part of the held block that follows: that one counts from kSettleNs on.
//   - A block that is not held ends, within a burst, too, as soon as it is clearly slower than the last one that was.
//     Two pairs that say so are an answer.
//   - A pair that says otherwise, and fits to nothing known, is made again at once; if that one does so as well, all
//     begins anew.
//   - Where holding costs the others less than kCheap of the time nothing is tried: they are held. Where it costs them
//     a smaller part of the time than the tolerance, that part is the tolerance: nobody is made slower by more than the
//     others can gain.
//   - The tolerance counts once for each of the others that have work, up to kMostOthers: what is given up for one
//     may be given up for another, too. Of a number that is larger than it was when the group was measured, that one.
//   - What is known was measured beside certain others. When these have been others for kOthersLastNs all is measured
//     anew, and the answer stays until that shows that it is wrong. At most once in kRelearnNs; where that found the
//     same answer, next time at most once in twice as long, up to kLongestRelearnNs.
//   - Times until the next look are times in which holding counts: what looking costs is a part of these.
//   - The answer changes at most once in kDwellNs. A mode is taken when it is slower by no more than the tolerance, and
//     left when it is slower by more than that and more than chance explains.
//
// A client that lies about its launches decides about itself alone: whether others are held for it.
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "daemon/policy/types.h"

namespace xschedd::policy {

class Benefit {
 public:
  static constexpr std::uint32_t kPairs = 32;
  static constexpr std::uint32_t kFewestPairs = 4;
  static constexpr std::uint64_t kShortestWaitNs = 2 * kNsPerS;
  static constexpr std::uint64_t kDearWaitNs = 16 * kNsPerS;
  static constexpr std::uint64_t kLongestWaitNs = 32 * kNsPerS;
  static constexpr std::uint64_t kDwellNs = 5 * kNsPerS;
  static constexpr double kCheap = 0.05;
  static constexpr double kDeadlineReserve = 0.1;
  static constexpr double kMostlyWaits = 0.9;
  static constexpr std::uint64_t kMostPauseNs = 5 * kNsPerMs;
  static constexpr std::uint64_t kSettleNs = 20 * kNsPerMs;
  static constexpr std::uint64_t kLingerNs = 500 * kNsPerUs;
  static constexpr float kFollowed = 0.25F;
  static constexpr std::uint32_t kMostOthers = 4;
  static constexpr std::uint64_t kOthersLastNs = kNsPerS;
  static constexpr std::uint64_t kRelearnNs = 10 * kNsPerS;
  static constexpr std::uint64_t kLongestRelearnNs = 40 * kNsPerS;
  static constexpr std::uint32_t kFewestWholePairs = 8;
  static constexpr double kSureErrors = 3;

  Benefit() = default;
  // Whether an average of this much means "at least": a block that is clearly slower ends before it is known how slow.
  static bool IsLowerBound(double ratio);
  // `tolerance_percent`: how much slower it may be beside each of the others; 0: they are always held.
  Benefit(std::uint32_t tolerance_percent, std::uint64_t now_ns);

  bool Measures() const { return tolerance_percent_ != 0; }

  struct Work {
    std::uint64_t launched = 0;  // since the last decision
    bool busy = false;           // it has some now
    bool waits = false;          // and its host waits for it
    bool others_work = false;    // somebody less important has some on one of its devices
    bool contended = false;      // both
    Others others{};             // such clients, with those who have just had some
    std::uint64_t deadline_ns = 0;
  };
  // What has passed since the last decision. Changes the mode when a block is over. Before groups are put in order.
  void Advance(BenefitMemory& memory, const Work& work) const;
  // Then, whether a pair is due, and begins it.
  bool IsDue(const BenefitMemory& memory) const;
  void Begin(BenefitMemory& memory) const;
  // Then, whether others are held for it now.
  void SetHolds(BenefitMemory& memory) const;
  // Afterwards. `open`: it is busy and not held itself. `next_look_ns` is brought forward to the end of a long block,
  // and of a linger.
  void Note(BenefitMemory& memory, bool open, std::uint64_t& next_look_ns) const;

 private:
  using Mode = BenefitMemory::Mode;
  void Count(BenefitMemory& memory, const Work& work) const;
  void CountPause(BenefitMemory& memory, BenefitMemory::Block& block) const;
  void NoteOthers(BenefitMemory& memory, const Others& others) const;
  void NoteWait(BenefitMemory& memory) const;
  bool Lingers(const BenefitMemory& memory) const;
  void EndBlock(BenefitMemory& memory) const;
  void SetMode(BenefitMemory& memory, Mode mode) const;
  void AddPair(BenefitMemory& memory) const;
  enum class Verdict { kUnknown, kFine, kSlower };
  static bool IsSurelySlower(const BenefitMemory::Comparison& known, double tolerance);
  Verdict VerdictOf(const BenefitMemory& memory, Mode mode) const;
  Mode AnswerOf(const BenefitMemory& memory) const;
  Mode CandidateOf(const BenefitMemory& memory, Mode answer) const;
  Mode NextTrial(const BenefitMemory& memory) const;
  void Conclude(BenefitMemory& memory, bool is_surprise) const;
  void Settle(BenefitMemory& memory, Mode mode) const;

  // As a logarithm of a ratio.
  double ToleranceOf(const BenefitMemory& memory) const;

  std::uint32_t tolerance_percent_ = 0;
  std::uint64_t now_ns_ = 0;
};

// In a word, when others are held for a group that is busy; by mode.
inline constexpr std::string_view kModeWords[BenefitMemory::kModes] = {
    "held", "waits-narrow", "waits-wider", "waits-wide", "beside", "beside-wide", "free"};
// What costs the others least; it is the first that is tried.
inline constexpr BenefitMemory::Mode kCheapest = BenefitMemory::Mode::kFree;
inline constexpr std::string_view ModeText(BenefitMemory::Mode mode) {
  return kModeWords[static_cast<std::size_t>(mode)];
}
// It holds nobody, whether it is busy or not.
inline constexpr bool IsBeside(BenefitMemory::Mode mode) {
  return mode >= BenefitMemory::Mode::kBeside;
}
inline constexpr bool IsWhileItWaits(BenefitMemory::Mode mode) {
  return mode != BenefitMemory::Mode::kHeld && !IsBeside(mode);
}

// What those have who are below a group of some mode and not held.
struct Allowance {
  std::uint32_t windows;  // of Settings::window_us, in flight
  bool is_each;           // each of them has so many, or all that are busy together
  // Time slices, where these are a lever (slices.h): of one that runs beside it alone, and of each of several. 0: the
  // driver's own.
  std::uint32_t slice_us;
  std::uint32_t slice_of_several_us;
};
inline constexpr Allowance AllowanceOf(BenefitMemory::Mode mode) {
  // On an H200 (driver 580.159.04), whose own slices between processes are 2 ms: with more than that in flight the
  // others lose nothing, with less they lose the rest of each slice; and a change of context costs about 0.3 ms. All
  // that is in flight together is far less than a block, so that one with others held is not spent on it (kSettleNs).
  constexpr Allowance kAllowances[BenefitMemory::kModes] = {
      {1, false, 200, 1'000}, {1, false, 200, 1'000}, {2, false, 200, 1'000}, {4, false, 200, 1'000},
      {4, true, 200, 1'000},  {8, true, 500, 0},      {32, false, 0, 0},
  };
  return kAllowances[static_cast<std::size_t>(mode)];
}
// By how many percent another mode is slower than held; `ratio`: one of the memory's.
double SlowerPercent(float ratio);

}  // namespace xschedd::policy
