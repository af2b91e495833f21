// What follows from the pairs: which modes are good enough, which is the answer, and what is tried next.
// Thread rule: benefit.h.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "daemon/policy/average.h"
#include "daemon/policy/benefit.h"

namespace xschedd::policy {
namespace {

using Mode = BenefitMemory::Mode;
using Comparison = BenefitMemory::Comparison;
using Measured = BenefitMemory::Measured;

constexpr Mode kFromCheapest[] = {Mode::kFree,           Mode::kBesideWide, Mode::kBeside,      Mode::kWaitsHalf,
                                  Mode::kWaitsWide,      Mode::kWaitsWider, Mode::kWaitsMedium, Mode::kWaitsNarrow,
                                  Mode::kWaitsNarrowest, Mode::kHeldWide};

// The standard error of the mean of `pairs` values; infinite for fewer than two.
double Error(double variance, std::uint32_t pairs) {
  return pairs < 2 ? std::numeric_limits<double>::infinity() : std::sqrt(variance / std::min(pairs, Benefit::kPairs));
}

// How many errors chance explains: two, and three for kFewestPairs, whose variance is itself a guess (Student's t).
double Confidence(std::uint32_t pairs) {
  const double freedom = std::min(pairs, Benefit::kPairs) - 1;
  return 2 * freedom / (freedom - 1);
}

// The mean of up to kPairs values; of more, an average that follows the last ones.
void Add(std::uint32_t& count, float& mean, float& variance, float value) {
  count = std::min(count + 1, Benefit::kPairs);
  Average(mean, variance, value, 1.0F / static_cast<float>(count));
}

// By the whole time, whatever the client reports about waits; -infinity: not known yet.
double SurelySlowerBy(const Comparison& known) {
  if (known.whole_pairs < Benefit::kFewestWholePairs) return -std::numeric_limits<double>::infinity();
  return known.whole - Benefit::kSureErrors * Error(known.whole_variance, known.whole_pairs);
}

void Add(Comparison& known, const Measured& pair, double tolerance) {
  known.pairs = std::min(known.pairs + 1, 4 * Benefit::kPairs);
  const float weight = 1.0F / static_cast<float>(std::min(known.pairs, Benefit::kPairs));
  Average(known.typical, known.typical_variance, pair.typical, weight);
  const auto most = 2 * static_cast<float>(tolerance);
  Average(known.tail, known.tail_variance, pair.typical - std::clamp(pair.typical, -most, most), weight);
  if (pair.others_gain) Add(known.others_pairs, known.others_gain, known.others_gain_variance, *pair.others_gain);
  if (pair.reports_waits) Add(known.whole_pairs, known.whole, known.whole_variance, pair.whole);
}

}  // namespace

// Whether it would differ from held, and by enough (benefit.h).
bool Benefit::IsOfUse(const BenefitMemory& memory, Mode mode) {
  if (mode == Mode::kHeldWide) return memory.several < kOftenSeveral * (memory.settled == Mode::kHeldWide ? 2 : 1);
  if (memory.longest < kCheap && HoldsThroughout(memory.settled)) return false;
  return IsBeside(mode) || (memory.held_waits_ns != 0 && memory.held_waits_ns <= kMostlyWaits * memory.held_ns);
}

Mode Benefit::CheapestOf(const BenefitMemory& memory) {
  const auto* const found = std::find_if(std::begin(kFromCheapest), std::end(kFromCheapest),
                                         [&](Mode mode) { return IsOfUse(memory, mode); });
  return found == std::end(kFromCheapest) ? Mode::kHeld : *found;
}

double Benefit::ToleranceOf(const BenefitMemory& memory, Mode mode) const {
  const double tolerance = tolerance_percent_ / 100.0;
  if (mode == Mode::kHeldWide) {
    const Comparison& known = memory.Of(mode);
    const double gain = known.others_gain - Error(known.others_gain_variance, known.others_pairs);
    return std::clamp(gain, std::log1p(tolerance), std::log1p(kMostForGain * tolerance));
  }
  const std::uint32_t others = std::min({memory.others.count, memory.known_with.count, kMaxOthers});
  const double held = memory.longest == 0 ? 1 : memory.longest;
  return std::log1p(std::min(tolerance * std::max(others * held, 1.0), held));
}

Benefit::Verdict Benefit::VerdictOf(const BenefitMemory& memory, Mode mode) const {
  if (mode == Mode::kHeld) return Verdict::kFine;  // the others are compared with it
  const Comparison& known = memory.Of(mode);
  const double tolerance = ToleranceOf(memory, mode);
  if (SurelySlowerBy(known) > tolerance) return Verdict::kSlower;
  const double error = Error(known.typical_variance, known.pairs);
  // Two errors, since few pairs make up the tail.
  const double least_tail = known.tail - 2 * Error(known.tail_variance, known.pairs);
  if (!known.is_known && known.pairs < kPairs) {
    if (known.pairs < kFewestPairs) {
      const double least = known.typical - 2 * error;
      return IsLowerBound(least) && least > tolerance ? Verdict::kSlower : Verdict::kUnknown;
    }
    const double confidence = Confidence(known.pairs) * error;
    if (known.typical - confidence > tolerance || least_tail > tolerance) return Verdict::kSlower;
    const bool is_whole_known = known.whole_pairs == 0 || known.whole_pairs >= kFewestWholePairs;
    const bool is_fine = known.typical + confidence < tolerance && known.tail < tolerance && is_whole_known;
    return is_fine ? Verdict::kFine : Verdict::kUnknown;
  }
  const bool is_in_force = memory.settled >= mode;
  const double least = known.typical - (is_in_force ? error : 0);
  return least > tolerance || least_tail > tolerance ? Verdict::kSlower : Verdict::kFine;
}

bool Benefit::IsSlightlySlower(const BenefitMemory& memory, Mode mode) const {
  return memory.Of(mode).typical <= kSlightly * ToleranceOf(memory, mode);
}

// The cheapest mode known to be good enough.
Mode Benefit::AnswerOf(const BenefitMemory& memory) const {
  for (const Mode mode : kFromCheapest)
    if (IsOfUse(memory, mode) && VerdictOf(memory, mode) == Verdict::kFine) return mode;
  return Mode::kHeld;
}

// The mode to try beside the answer: first the cheapest, then the middle one of the unknown between the dearest that is
// too slow and the answer, of two the dearer, which is more often good enough; at last the next cheaper.
Mode Benefit::CandidateOf(const BenefitMemory& memory, Mode answer) const {
  const Mode cheapest = CheapestOf(memory);
  if (cheapest <= answer || VerdictOf(memory, cheapest) == Verdict::kUnknown) return cheapest;
  std::array<Mode, BenefitMemory::kModes> between;
  std::size_t count = 0;
  Mode cheaper = cheapest;
  for (const Mode mode : kFromCheapest) {
    if (mode <= answer || mode == Mode::kHeldWide) break;
    if (!IsOfUse(memory, mode)) continue;
    if (VerdictOf(memory, mode) == Verdict::kUnknown) {
      between[count++] = mode;
    } else {
      count = 0;  // it is too slow, and cheaper ones are no faster
    }
    cheaper = mode;
  }
  if (count != 0) return between[count / 2];
  const bool wide_is_left = answer < Mode::kHeldWide && IsOfUse(memory, Mode::kHeldWide) &&
                            VerdictOf(memory, Mode::kHeldWide) == Verdict::kUnknown;
  return wide_is_left ? Mode::kHeldWide : cheaper;
}

// The candidate until it is known; then candidate, answer and cheapest in rotation. The cheapest shows best that a
// program has changed. An answer that was not measured yet comes first: it is in force, and if it is wrong, it costs
// the group something until that is known.
Mode Benefit::NextTrial(const BenefitMemory& memory) const {
  if (IsOfUse(memory, memory.settled) && VerdictOf(memory, memory.settled) == Verdict::kUnknown) return memory.settled;
  const Mode answer = AnswerOf(memory);
  const Mode candidate = CandidateOf(memory, answer);
  if (VerdictOf(memory, candidate) == Verdict::kUnknown) return candidate;
  if (memory.trial == candidate && answer != Mode::kHeld) return answer;
  const Mode cheapest = CheapestOf(memory);
  return memory.trial == cheapest ? candidate : cheapest;
}

void Benefit::Learn(BenefitMemory& memory, const Measured& pair) const {
  Comparison& known = memory.Of(memory.trial);
  const double tolerance = ToleranceOf(memory, memory.trial);
  const bool is_against = known.is_known && (pair.typical > tolerance) != (known.typical > tolerance);
  if (is_against && !memory.repeats) {
    memory.repeats = true;
    memory.doubtful = pair;
    memory.next_trial_ns = now_ns_;
    return;
  }
  // What is known is as wrong if the repeat is far from it on its own side.
  const bool is_far = std::abs(pair.typical - known.typical) > tolerance + 2 * std::sqrt(known.typical_variance);
  if (memory.repeats && (is_against || is_far)) {
    // Without these two: they are the ones that were chosen for being unlike the others.
    known = {};
  } else {
    if (memory.repeats) Add(known, memory.doubtful, tolerance);
    Add(known, pair, tolerance);
  }
  memory.repeats = false;
  // A verdict that is clear early stands: further pairs come one by one.
  known.is_known = known.is_known || VerdictOf(memory, memory.trial) != Verdict::kUnknown;
  Conclude(memory);
}

void Benefit::Conclude(BenefitMemory& memory) const {
  const Mode answer = AnswerOf(memory);
  const Mode candidate = CandidateOf(memory, answer);
  const bool goes_on = VerdictOf(memory, candidate) == Verdict::kUnknown;
  memory.searches = goes_on;
  const bool is_wrong = answer < memory.settled && VerdictOf(memory, memory.settled) == Verdict::kSlower;
  if (!goes_on || is_wrong) {
    const bool is_between = goes_on && answer < candidate && candidate < memory.settled;
    Settle(memory, is_between && IsSlightlySlower(memory, memory.settled) ? candidate : answer);
  } else if (answer > memory.settled) {
    Change(memory, answer);
  }
  if (goes_on) memory.next_trial_ns = now_ns_;
}

bool Benefit::Change(BenefitMemory& memory, Mode mode) const {
  if (mode == memory.settled) return true;
  if (memory.changed_ns != 0 && now_ns_ - memory.changed_ns < kDwellNs) return false;
  memory.changed_ns = now_ns_;
  memory.settled = mode;
  memory.answer_pace_ns = 0;
  memory.paced_ns = memory.paced_launches = 0;
  return true;
}

void Benefit::Settle(BenefitMemory& memory, Mode mode) const {
  memory.unspared = kUnsparedPairs;
  const bool changes = mode != memory.settled;
  memory.is_put_off = !Change(memory, mode);
  if (memory.is_put_off) {
    memory.next_trial_ns = memory.changed_ns + kDwellNs;
    return;
  }
  memory.wait_ns =
      changes || memory.wait_ns == 0 ? kFirstWaitNs : std::clamp(2 * memory.wait_ns, kShortestWaitNs, kLongestWaitNs);
  memory.next_trial_ns = now_ns_ + memory.wait_ns;
}

bool IsSettled(const BenefitMemory& memory) {
  return memory.wait_ns != 0 || (MostTelling(memory) && Benefit::CheapestOf(memory) == Mode::kHeld);
}

bool IsSearching(const BenefitMemory& memory) {
  return memory.searches && Benefit::CheapestOf(memory) != Mode::kHeld;
}

float SlowerBy(const Comparison& known) {
  return SurelySlowerBy(known) > known.typical ? known.whole : known.typical;
}

std::optional<Mode> MostTelling(const BenefitMemory& memory) {
  for (const Mode mode : {kCheapest, Mode::kHeldWide})
    if (memory.Of(mode).pairs != 0) return mode;
  return std::nullopt;
}

}  // namespace xschedd::policy
