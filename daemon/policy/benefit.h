// How others should be held for an important group, found out by trying: now and then they run beside it for a moment,
// or are held late, and how fast it gets on is compared with its pace while they are held.
//
//   - Held late: from a part of its usual burst on. A host that runs ahead of the GPU makes up for what others delayed
//     in the midst of a burst; what counts is that the GPU is its own when the host waits for the end.
//   - How fast it gets on is its busy time per launch: for requests of one kind their length, for a program that
//     launches all the time the inverse of its rate; for one whose host is the bottleneck the same in both ways.
//   - With a deadline late is late and early is nothing: a burst counts as long as its deadline, less a reserve
//     (kDeadlineReserve), unless it takes longer.
//   - A block is some of its work in one mode, while somebody less important has work there: a few bursts, or a tenth
//     of a second of a long one. Two neighbouring blocks, one held and one of another mode, are a pair. Only the two of
//     a pair are compared: a core's speed, and what a program does, change by more than the tolerance within seconds.
//   - A pair says the logarithm of a ratio, the other mode to held. Two averages count: of all pairs, and of what is
//     outside twice the tolerance (the tail). Pairs follow one another until the mode is clear, kPairs at most.
//   - `beside` comes first. If it is too slow, late holds follow, the earliest first, until one is too slow. Then the
//     answer, the next cheaper mode and `beside` are looked at by turns: after kShortestWaitNs
//     (kDearWaitNs where a look costs the group much), and each time that the
//     answer stays the same after twice as long, up to kLongestWaitNs.
//   - A hold comes late only where a launch takes no longer than a host may need for it (kHostNs), else the GPU is what
//     the group waits for; and where there is time for others to do something (kShortestDelayNs).
//   - A block that is not held ends, within a burst, too, as soon as it is clearly slower than the last one that was.
//     Two pairs that say so are an answer.
//   - A pair that fits to nothing known is made again at once; if that one does not fit, either, all begins anew.
//   - Where holding costs the others less than kCheap of the time nothing is tried: they are held.
//   - The answer changes at most once in kDwellNs. A mode is taken when it is slower by no more than the tolerance, and
//     left when it is slower by more than that and more than chance explains.
//
// A client that lies about its launches decides about itself alone: whether others are held for it.
// Thread rule: pure functions.
#pragma once

#include <algorithm>
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
  static constexpr double kHostNs = 200 * kNsPerUs;
  static constexpr double kShortestDelayNs = kNsPerMs;

  Benefit() = default;
  // Whether an average of this much means "at least": a block that is clearly slower ends before it is known how slow.
  static bool IsLowerBound(double ratio);
  // `tolerance_percent`: how much slower it may be beside others; 0: others are always held.
  Benefit(std::uint32_t tolerance_percent, std::uint64_t now_ns);

  struct Work {
    std::uint64_t launched = 0;  // since the last decision
    bool busy = false;           // it has some now
    bool contended = false;      // and somebody less important has some on one of its devices
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
  // and to the beginning of a late hold.
  void Note(BenefitMemory& memory, bool open, std::uint64_t& next_look_ns) const;

 private:
  using Mode = BenefitMemory::Mode;
  void Count(BenefitMemory& memory, const Work& work) const;
  void EndBlock(BenefitMemory& memory) const;
  void AddPair(BenefitMemory& memory) const;
  enum class Verdict { kUnknown, kFine, kSlower };
  Verdict VerdictOf(const BenefitMemory& memory, Mode mode) const;
  Mode AnswerOf(const BenefitMemory& memory) const;
  Mode CandidateOf(const BenefitMemory& memory, Mode answer) const;
  Mode NextTrial(const BenefitMemory& memory) const;
  void Conclude(BenefitMemory& memory) const;
  void Settle(BenefitMemory& memory, Mode mode) const;

  double tolerance_ = 0;  // a logarithm of a ratio
  std::uint64_t now_ns_ = 0;
};

// What others are for a group while it is busy, in a word; it does not matter how late.
inline constexpr std::string_view kOthersWords[] = {"held", "late", "beside"};
inline constexpr std::size_t OthersOf(BenefitMemory::Mode mode) {
  return mode == BenefitMemory::Mode::kHeld ? 0 : mode == BenefitMemory::Mode::kBeside ? 2 : 1;
}
inline constexpr std::string_view OthersText(BenefitMemory::Mode mode) {
  return kOthersWords[OthersOf(mode)];
}
// By how many percent another mode is slower than held; `ratio`: one of the memory's.
double SlowerPercent(float ratio);
// How long after a burst's beginning others are held, in ns of the group's own time; 0 unless the mode is a late one.
double DelayNs(const BenefitMemory& memory, BenefitMemory::Mode mode);
inline std::uint32_t DelayUs(const BenefitMemory& memory, BenefitMemory::Mode mode) {
  return static_cast<std::uint32_t>(std::min(DelayNs(memory, mode) / kNsPerUs, 4e9));
}

}  // namespace xschedd::policy
