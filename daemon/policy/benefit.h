// Whether holding others helps an important group, found out by doing both: now and then the others run beside it for
// a moment, and how fast it gets on is compared.
//
//   - How fast it gets on is its busy time per launch: for requests of one kind their length, for a program that
//     launches all the time the inverse of its rate; for one whose host is the bottleneck the same in both ways.
//   - A block is some of its work in one mode, while somebody less important has work there: a few bursts, or a tenth
//     of a second of a long one. Two neighbouring blocks, one of each mode, are a pair. Only the two of a pair are
//     compared: a core's speed, and what a program does, change by more than the tolerance within seconds.
//   - A pair says the logarithm of a ratio, beside to held. Two averages count: of all pairs, and of what is outside
//     twice the tolerance (the tail). Pairs follow one another until the answer is clear, kPairs at most; then one
//     comes after kShortestWaitNs, and each time that the answer stays the same after twice as long, up to
//     kLongestWaitNs.
//   - A block beside others ends, within a burst, too, as soon as it is clearly slower than the last one with them
//     held. Two pairs that say so are an answer.
//   - A pair that fits to nothing known is made again at once; if that one does not fit, either, all begins anew.
//   - Where holding costs the others less than kCheap of the time nothing is tried: they are held.
//   - The answer changes at most once in kDwellNs. It becomes `beside` when beside is slower by no more than the
//     tolerance, and `held` when it is slower by more than that and more than chance explains.
//
// A client that lies about its launches decides about itself alone: whether others are held for it.
// Thread rule: pure functions.
#pragma once

#include <cstdint>

#include "daemon/policy/types.h"

namespace xschedd::policy {

class Benefit {
 public:
  static constexpr std::uint32_t kPairs = 32;
  static constexpr std::uint32_t kFewestPairs = 4;
  static constexpr std::uint64_t kShortestWaitNs = 2 * kNsPerS;
  static constexpr std::uint64_t kLongestWaitNs = 32 * kNsPerS;
  static constexpr std::uint64_t kDwellNs = 5 * kNsPerS;
  static constexpr double kCheap = 0.05;

  Benefit() = default;
  // Whether an average of this much means "at least": a block that is clearly slower ends before it is known how slow.
  static bool IsLowerBound(double ratio);
  // `tolerance_percent`: how much slower it may be beside others; 0: others are always held.
  Benefit(std::uint32_t tolerance_percent, std::uint64_t now_ns);

  // What has passed since the last decision, in which the group launched so often. `busy`: it has work now;
  // `contended`: and somebody less important has some on one of its devices. Changes the mode when a block is over.
  // Before groups are put in order.
  void Advance(BenefitMemory& memory, std::uint64_t launched, bool busy, bool contended) const;
  // Then, whether a pair is due, and begins it.
  bool IsDue(const BenefitMemory& memory) const;
  void Begin(BenefitMemory& memory) const;
  // Afterwards. `open`: it is busy and not held itself. `next_look_ns` is brought forward to the end of a long block.
  void Note(BenefitMemory& memory, bool open, std::uint64_t& next_look_ns) const;

 private:
  using Mode = BenefitMemory::Mode;
  void Count(BenefitMemory& memory, std::uint64_t launched, bool busy) const;
  void EndBlock(BenefitMemory& memory) const;
  void AddPair(BenefitMemory& memory) const;
  void Judge(BenefitMemory& memory) const;
  void Settle(BenefitMemory& memory, Mode mode) const;

  double tolerance_ = 0;  // a logarithm of a ratio
  std::uint64_t now_ns_ = 0;
};

// By how many percent beside is slower than held; `ratio`: one of the memory's.
double SlowerPercent(float ratio);

}  // namespace xschedd::policy
