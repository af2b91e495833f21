#include "daemon/policy/benefit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "daemon/policy/waits.h"

namespace xschedd::policy {
namespace {

using Mode = BenefitMemory::Mode;
using Block = BenefitMemory::Block;

// A block ends after kFewestBursts and kShortestBlockNs, with a request after kManyBursts, or kSlowBursts that are
// slower by kClearFactor, or after kLongestBlockNs.
constexpr std::uint16_t kFewestBursts = 2;
constexpr std::uint16_t kSlowBursts = 3;
constexpr std::uint64_t kShortestBlockNs = 40 * kNsPerMs;
constexpr std::uint16_t kManyBursts = 8;
constexpr std::uint64_t kLongestBlockNs = 100 * kNsPerMs;
// Ratios are clipped to this: a block that ends for being clearly slower does not show how much slower.
constexpr double kMaxRatio = 0.4;  // a logarithm
// Clearly slower: by this factor and by this time; single bursts may be slow for other reasons.
constexpr double kClearFactor = 1.5;
constexpr double kClearNs = 10 * kNsPerMs;
// More than a core's speed changes: a program that starts, or whose requests have become others. In runs on an H200 the
// pace of steady programs varied by up to 2.2, and that of their first seconds was 3 to hundreds of times another
// (docs/results/h200-pairs-4ba044c1.md).
constexpr float kOtherWork = 2.5F;
// So much work with the answer in force has one pace: the mixture of a program's requests averages out.
constexpr std::uint64_t kPacedNs = kNsPerS;
// With fewer in a block, how fast others were is not known.
constexpr std::uint64_t kFewestOthersLaunches = 20;
// A logarithm; a client may write any number of launches.
constexpr double kMaxOthersGain = 5;
// After this time a burst has made some launches.
constexpr std::uint64_t kFirstCheckNs = 2 * kNsPerMs;
// A burst earns 1/this of its time as credit for pauses (benefit.h).
constexpr std::uint64_t kPausePart = 4;
// A spell weighs 1/this in the average length of spells.
constexpr std::uint64_t kUsualPart = 32;
// While others work and the group does not, the time until the next trial passes 1/this as fast.
constexpr std::uint64_t kSlowPart = 4;
// The period over which the cost of holding is measured.
constexpr std::uint64_t kCostNs = kNsPerS;

// Whether two paces are of different work.
bool IsOtherWork(float known_ns, float pace_ns, float factor = kOtherWork) {
  return known_ns != 0 && std::max(known_ns, pace_ns) > factor * std::min(known_ns, pace_ns);
}

// Counts the present burst, with a deadline as benefit.h says.
void AddBurst(const BenefitMemory& memory, Block& block) {
  const double in_time_ns = (1 - Benefit::kDeadlineReserve) * static_cast<double>(memory.deadline_ns);
  ++block.bursts;
  block.wanted_ns += std::max(memory.burst_ns, static_cast<std::uint64_t>(in_time_ns));
}

double PerLaunch(std::uint64_t ns, const Block& block) {
  return static_cast<double>(ns) / static_cast<double>(block.launches);
}

// Logarithms of ratios: how much slower `other` is than `held`.
double WholeRatio(const Block& held, const Block& other) {
  return std::log(PerLaunch(std::max<std::uint64_t>(other.busy_ns, 1), other) /
                  PerLaunch(std::max<std::uint64_t>(held.busy_ns, 1), held));
}

// How much faster the less important clients were. With one more launch each, since they may make none while held.
std::optional<float> OthersGain(const Block& held, const Block& other) {
  if (other.others_launches < kFewestOthersLaunches || held.lasted_ns == 0 || other.lasted_ns == 0) return std::nullopt;
  const auto rate = [](const Block& block) {
    return static_cast<double>(block.others_launches + 1) / static_cast<double>(block.lasted_ns);
  };
  return static_cast<float>(std::clamp(std::log(rate(other) / rate(held)), -kMaxOthersGain, kMaxOthersGain));
}

double DeadlineRatio(const Block& held, const Block& other) {
  const auto each = [](const Block& block) {
    return static_cast<double>(std::max<std::uint64_t>(block.wanted_ns, 1)) / std::max<std::uint16_t>(block.bursts, 1);
  };
  return std::log(each(other) / each(held));
}

double WaitsRatio(const Block& held, const Block& other) {
  const double host = static_cast<double>(held.busy_ns - held.waits_ns + other.busy_ns - other.waits_ns) /
                      static_cast<double>(held.launches + other.launches);
  return std::log((host + PerLaunch(other.waits_ns, other) + 1) / (host + PerLaunch(held.waits_ns, held) + 1));
}

// The present block's busy time; for a client that reports its waits, with the host's speed in the last held block.
double ComparedNs(const BenefitMemory& memory) {
  const Block& block = memory.block;
  if (memory.held_waits_ns == 0 && block.waits_ns == 0) return static_cast<double>(block.busy_ns);
  const double host = static_cast<double>(memory.held_ns) - static_cast<double>(memory.held_waits_ns);
  return host * static_cast<double>(block.launches) + static_cast<double>(block.waits_ns);
}

// When the present pause becomes too long to count as host time: what follows is another request.
std::uint64_t RequestEndsAt(const BenefitMemory& memory) {
  return memory.idle_since_ns + memory.pause_credit_ns;
}

// What the block's launches so far would take while others are held; infinite: not known yet, or its deadline is met.
double ExpectedNs(const BenefitMemory& memory) {
  const bool is_in_time = memory.deadline_ns != 0 && memory.burst_ns <= memory.deadline_ns;
  if (memory.mode == Mode::kHeld || memory.held_ns == 0 || memory.block.launches == 0 || is_in_time)
    return std::numeric_limits<double>::infinity();
  return static_cast<double>(memory.held_ns) * static_cast<double>(memory.block.launches);
}

// The ComparedNs from which the block is clearly slower.
double ClearlySlowerAt(const BenefitMemory& memory) {
  const double expected = ExpectedNs(memory);
  return std::max(expected * kClearFactor, expected + kClearNs);
}

// The block ends with the present request.
bool IsLastRequest(const BenefitMemory& memory) {
  const std::uint16_t bursts = memory.block.bursts;
  if (bursts >= kManyBursts) return true;
  return bursts >= kSlowBursts && ComparedNs(memory) > kClearFactor * ExpectedNs(memory);
}

// Unless clearly slower, a block ends between bursts or in a long one: within a short one, launches are made whose work
// is not done.
bool IsOver(const BenefitMemory& memory, bool busy, std::uint64_t now_ns) {
  const Block& block = memory.block;
  if (ComparedNs(memory) > ClearlySlowerAt(memory)) return true;
  if (busy) return memory.burst_ns >= kLongestBlockNs && block.busy_ns >= kLongestBlockNs;
  return (block.bursts >= kFewestBursts && block.busy_ns >= kShortestBlockNs) ||
         (IsLastRequest(memory) && now_ns > RequestEndsAt(memory)) || block.busy_ns >= kLongestBlockNs;
}

std::uint64_t AheadNs(Mode mode) {
  return AllowanceOf(mode).ahead_us * kNsPerUs;
}

// Until when others are held for a wait that is expected; 0: they are not.
std::uint64_t ShutUntilNs(const BenefitMemory& memory) {
  const std::uint64_t since_ns = memory.waits.shut_since_ns;
  return since_ns == 0 ? 0 : since_ns + Benefit::kMostAhead * AheadNs(memory.mode);
}

float Part(std::uint64_t ns, std::uint64_t of_ns) {
  return static_cast<float>(static_cast<double>(ns) / static_cast<double>(of_ns));
}

float Clip(double ratio) {
  return static_cast<float>(std::clamp(ratio, -kMaxRatio, kMaxRatio));
}

}  // namespace

Benefit::Benefit(std::uint32_t tolerance_percent, std::uint32_t linger_us, std::uint64_t now_ns)
    : tolerance_percent_(tolerance_percent), linger_ns_(linger_us * kNsPerUs), now_ns_(now_ns) {}

bool Benefit::IsLowerBound(double ratio) {
  return ratio > 0.9 * kMaxRatio;
}

void Benefit::Advance(BenefitMemory& memory, const Work& work) const {
  if (!Measures()) {
    // What is known is kept until it counts again.
    memory.mode = Mode::kHeld;
    memory.place = 0;
    memory.block = {};
    memory.seen_ns = memory.idle_since_ns = memory.waits.stretch_since_ns = 0;
    memory.waits.now = false;
    memory.waits.shut_since_ns = 0;
    return;
  }
  // Both blocks of a pair must be counted alike.
  if ((memory.deadline_ns == 0) != (work.deadline_ns == 0)) memory.place = 0;
  memory.deadline_ns = work.deadline_ns;
  Count(memory, work);
  if (memory.others_aside && !work.others_aside) memory.watched_ns = now_ns_;
  NoteWork(memory, work);
  NotePace(memory);
  NoteLaunches(memory.waits, work.launched);
  const bool begins_row = NoteWaits(memory.waits, work.busy && work.waits, now_ns_);
  // It flips in this mode alone: every other block of a pair is in another one, and blocks of one row each would
  // otherwise all be of one kind.
  if (begins_row && memory.mode == Mode::kWaitsHalf) memory.lets_row_be = !memory.lets_row_be;
  if (IsMeasured(memory) && IsOver(memory, work.busy, now_ns_)) EndBlock(memory);
  if (!IsMeasured(memory)) UseAnswer(memory);
}

void Benefit::NoteWork(BenefitMemory& memory, const Work& work) {
  memory.contended = work.contended;
  memory.others_work = work.others_work;
  memory.several_work = work.several_work;
  memory.others_aside = work.others_aside;
}

// While no pair is measured.
void Benefit::UseAnswer(BenefitMemory& memory) {
  memory.mode = memory.settled == Mode::kHeldWide && !IsOfUse(memory, memory.settled) ? Mode::kHeld : memory.settled;
  memory.block = {};
}

void Benefit::NoteOthers(BenefitMemory& memory, const Others& others) const {
  if (!Measures()) return;
  if (others != memory.others) {
    memory.others = others;
    memory.others_since_ns = now_ns_;
  }
  if (!memory.contended || others == memory.known_with || now_ns_ - memory.others_since_ns < kOthersLastNs) return;
  // What is known may have been measured beside these already: for other work, after they came.
  if (memory.known_with.who != 0 && memory.relearnt_ns <= memory.others_since_ns) {
    if (!Relearn(memory)) return;
    UseAnswer(memory);
  }
  memory.known_with = others;
}

// False: the last time was too short a time ago.
bool Benefit::Relearn(BenefitMemory& memory) const {
  if (memory.relearnt_ns != 0 && now_ns_ - memory.relearnt_ns < memory.relearn_wait_ns) return false;
  // The cheapest mode is measured first: if it is unknown, nothing was found yet.
  const bool is_same = memory.Of(kCheapest).is_known && memory.settled == memory.relearnt_from;
  memory.relearn_wait_ns = is_same ? std::clamp(2 * memory.relearn_wait_ns, kRelearnNs, kLongestRelearnNs) : kRelearnNs;
  memory.relearnt_from = memory.settled;
  memory.is_put_off = false;
  Forget(memory);
  memory.place = 0;
  memory.relearnt_ns = memory.next_trial_ns = now_ns_;
  return true;
}

// It is a first search again: what trials cost the other work, as while the program started, is no reason to put it
// off.
void Benefit::RelearnOtherWork(BenefitMemory& memory) const {
  if (!Relearn(memory)) return;
  memory.spared_ns = 0;
  memory.unspared = 0;
}

void Benefit::Forget(BenefitMemory& memory) {
  memory.comparisons = {};
  memory.searches = true;
  memory.repeats = false;
  memory.known_pace_ns = memory.answer_pace_ns = 0;
}

// Of the work with the answer in force.
void Benefit::NotePace(BenefitMemory& memory) const {
  if (memory.paced_ns < kPacedNs) return;
  if (memory.paced_launches != 0) {
    const float pace_ns = static_cast<float>(memory.paced_ns) / static_cast<float>(memory.paced_launches);
    // A part of the answer's first second may be of the work for which it was found, so it is compared with that of the
    // first pair as well, which may be of one kind of request.
    const bool is_first = memory.answer_pace_ns == 0;
    const bool is_other = is_first ? IsOtherWork(memory.known_pace_ns, pace_ns, kOtherWork * kOtherWork)
                                   : IsOtherWork(memory.answer_pace_ns, pace_ns);
    if (is_other) RelearnOtherWork(memory);
    if (memory.answer_pace_ns == 0) memory.answer_pace_ns = pace_ns;
  }
  memory.paced_ns = memory.paced_launches = 0;
}

bool Benefit::IsDue(const BenefitMemory& memory) const {
  const bool in_long_request = memory.request_ns >= kShortestBlockNs;
  const bool at_an_edge =
      memory.burst_ns == 0 ? memory.request_ns == 0 || in_long_request : memory.burst_ns >= kLongestBlockNs;
  const bool is_seen = !memory.others_aside && (memory.watched_ns == 0 || now_ns_ >= memory.watched_ns + kSettleNs);
  return Measures() && !IsMeasured(memory) && memory.contended && is_seen && at_an_edge &&
         now_ns_ >= memory.next_trial_ns && (memory.spared_ns == 0 || memory.unspared < kUnsparedPairs) &&
         CheapestOf(memory) != Mode::kHeld;
}

void Benefit::Begin(BenefitMemory& memory) const {
  memory.place = 1;
  if (!memory.repeats) memory.trial = NextTrial(memory);
  // Held and trial come first alternately: others catch up in the block after they were held.
  SetMode(memory, (memory.Of(memory.trial).pairs + (memory.repeats ? 1 : 0)) % 2 == 0 ? Mode::kHeld : memory.trial);
  // Until now, the number of launches was known late.
  if (memory.burst_ns != 0) memory.settles_until_ns = std::max(memory.settles_until_ns, now_ns_ + kLateCountNs);
  // At a burst's beginning its launches so far were counted already, for no block.
  if (memory.burst_ns == 0 && !memory.skips && !memory.skips_request) memory.block.launches = memory.burst_launches;
}

// At the beginning of a block.
void Benefit::SetMode(BenefitMemory& memory, Mode mode) const {
  if (mode == Mode::kHeld && memory.mode != Mode::kHeld) {
    memory.settles_until_ns = now_ns_ + kSettleNs;
    memory.skips = memory.burst_ns < kLongestBlockNs;
  }
  // What is under way began when others had no more in flight than a small window allows.
  const bool is_between = memory.idle_since_ns != 0 && now_ns_ > RequestEndsAt(memory);
  memory.skips_request = mode != Mode::kHeld && !is_between && memory.request_ns < kShortestBlockNs;
  if (mode == Mode::kHeldWide && memory.idle_since_ns == 0) memory.skips = memory.burst_ns < kLongestBlockNs;
  memory.mode = mode;
}

void Benefit::SetHolds(BenefitMemory& memory) const {
  WaitMemory& waits = memory.waits;
  const std::uint64_t ahead_ns = AheadNs(memory.mode);
  if (ahead_ns != 0 && memory.idle_since_ns == 0 && waits.shut_since_ns == 0) {
    const std::uint64_t wait_ns = NextWaitNs(waits, now_ns_);
    if (wait_ns != 0 && wait_ns <= now_ns_ + ahead_ns) waits.shut_since_ns = now_ns_;
  }
  const bool is_near = waits.now || now_ns_ < std::max(LingersUntilNs(waits), ShutUntilNs(memory));
  const bool lets_be = memory.mode == Mode::kWaitsHalf && memory.lets_row_be;
  memory.holds = HoldsThroughout(memory.mode) || (IsWhileItWaits(memory.mode) && is_near && !lets_be);
}

void Benefit::Count(BenefitMemory& memory, const Work& work) const {
  const std::uint64_t passed = memory.seen_ns == 0 ? 0 : now_ns_ - memory.seen_ns;
  memory.seen_ns = now_ns_;
  Block unused;
  const bool skips = memory.skips || memory.skips_request || now_ns_ <= memory.settles_until_ns;
  Block& block = skips ? unused : memory.block;
  const bool tries = IsMeasured(memory) && memory.mode != Mode::kHeld;
  if (work.busy && memory.idle_since_ns != 0) {
    if (now_ns_ - memory.idle_since_ns > linger_ns_) EndSpell(memory);
    CountPause(memory, block);
  }
  block.launches += work.launched;
  block.lasted_ns += passed;
  block.others_launches += work.others_launched;
  memory.burst_launches += work.launched;
  if (memory.open) {
    block.busy_ns += passed;
    memory.burst_ns += passed;
    memory.request_ns += passed;
    memory.spell_ns += passed;
    if (!tries) memory.spared_ns -= std::min(passed, memory.spared_ns);
    if (memory.waits.now) block.waits_ns += passed;
    if (memory.contended) {
      block.contended_ns += passed;
      if (!tries) memory.contended_ns += passed;
      if (memory.holds) memory.waited_ns += passed;
      if (!IsMeasured(memory)) {
        memory.paced_ns += passed;
        memory.paced_launches += work.launched;
      }
    }
    // A burst may never end, and neither may a request.
    memory.skips = memory.skips && memory.burst_ns < kLongestBlockNs;
    memory.skips_request = memory.skips_request && memory.request_ns < kShortestBlockNs;
  }
  const bool counts = memory.open && memory.contended;
  if (!counts && memory.next_trial_ns > now_ns_ - passed && memory.next_trial_ns != kNever) {
    const bool passes_slowly = memory.others_work && memory.longest >= kCheap;
    memory.next_trial_ns += passes_slowly ? passed - passed / kSlowPart : passed;
  }
  if (memory.others_work && !tries) memory.others_ns += passed;
  if (memory.several_work && !tries) memory.several_ns += passed;
  if (memory.others_ns >= kCostNs) {
    // A long time without work says nothing about the time in which it works: others that are aside cause no decision.
    if (counts || passed < kCostNs || !memory.others_aside)
      memory.longest = Part(memory.contended_ns, memory.others_ns);
    memory.several = Part(memory.several_ns, memory.others_ns);
    memory.others_ns = memory.several_ns = memory.contended_ns = 0;
    // The wait for the next trial may have become long while others were not worth one, or before the tolerance, which
    // follows this, became less than what the answer costs; or an answer was put off, and may come into force now.
    const bool is_new = memory.longest >= kCheap && !memory.Of(kCheapest).is_known;
    const bool is_wrong =
        now_ns_ - memory.changed_ns >= kRelearnNs && VerdictOf(memory, memory.settled) == Verdict::kSlower;
    const bool is_late = memory.is_put_off && now_ns_ - memory.changed_ns >= kDwellNs;
    if ((is_new || is_wrong || is_late) && memory.next_trial_ns != kNever)
      memory.next_trial_ns = std::min(memory.next_trial_ns, now_ns_);
  }
  if (memory.cost_since_ns == 0) memory.cost_since_ns = now_ns_;
  if (const std::uint64_t time = now_ns_ - memory.cost_since_ns; time >= kCostNs) {
    memory.cost = Part(memory.waited_ns, time);
    memory.cost_since_ns = now_ns_;
    memory.waited_ns = 0;
  }
  if (work.busy) return;
  if (memory.idle_since_ns == 0) memory.idle_since_ns = now_ns_;
  memory.pause_credit_ns = std::min(memory.pause_credit_ns + memory.burst_ns / kPausePart, kMaxPauseNs);
  if (memory.burst_launches != 0) AddBurst(memory, block);
  memory.burst_ns = memory.burst_launches = 0;
  memory.skips = now_ns_ < memory.settles_until_ns;
}

// A pause ends now. One before a block's first burst does not count, so that both blocks of a pair have as many.
void Benefit::CountPause(BenefitMemory& memory, Block& block) const {
  const bool is_over = now_ns_ > RequestEndsAt(memory);
  const std::uint64_t pause_ns = now_ns_ - memory.idle_since_ns;
  if (is_over) NoteRequest(memory.waits, memory.idle_since_ns, now_ns_);
  memory.idle_since_ns = 0;
  if (is_over) {
    memory.request_ns = 0;
    memory.skips_request = false;
    return;
  }
  memory.pause_credit_ns -= pause_ns;
  if (block.bursts != 0) block.busy_ns += pause_ns;
}

std::uint64_t Benefit::UsualSpellNs(const BenefitMemory& memory) {
  const std::uint64_t usual = memory.usual_spell_ns;
  if (usual == 0) return memory.spell_ns;
  return usual + (memory.spell_ns - std::min(usual, memory.spell_ns)) / kUsualPart;
}

void Benefit::EndSpell(BenefitMemory& memory) {
  const std::uint64_t before = memory.usual_spell_ns;
  memory.usual_spell_ns = before == 0 ? memory.spell_ns : before - before / kUsualPart + memory.spell_ns / kUsualPart;
  memory.spell_ns = 0;
}

void Benefit::EndBlock(BenefitMemory& memory) const {
  Block& block = memory.block;
  if (memory.burst_launches != 0) AddBurst(memory, block);  // a part of a burst
  // A block without launches, or mostly without contention, proves nothing. The pair begins anew, since its blocks must
  // be neighbours.
  if (block.launches == 0 || block.contended_ns * 2 < block.busy_ns) {
    memory.place = 0;
    return;
  }
  if (memory.mode == Mode::kHeld) {
    memory.held_ns = static_cast<float>(PerLaunch(block.busy_ns, block));
    memory.held_waits_ns = static_cast<float>(PerLaunch(block.waits_ns, block));
  }
  if (memory.place == 1) {
    memory.first = block;
    block = {};
    memory.skips = memory.burst_launches != 0 && memory.burst_ns < kLongestBlockNs;
    memory.place = 2;
    SetMode(memory, memory.mode == Mode::kHeld ? memory.trial : Mode::kHeld);
    return;
  }
  AddPair(memory);
  memory.place = 0;
}

void Benefit::AddPair(BenefitMemory& memory) const {
  const Block& held = memory.mode == Mode::kHeld ? memory.block : memory.first;
  const Block& other = memory.mode == Mode::kHeld ? memory.first : memory.block;
  const bool reports_waits = memory.deadline_ns == 0 && held.waits_ns + other.waits_ns != 0;
  const float whole = Clip(WholeRatio(held, other));
  const float typical = memory.deadline_ns != 0 ? Clip(DeadlineRatio(held, other))
                        : reports_waits         ? Clip(WaitsRatio(held, other))
                                                : whole;
  const auto pace_ns = static_cast<float>(PerLaunch(std::max<std::uint64_t>(held.busy_ns, 1), held));
  if (IsOtherWork(memory.known_pace_ns, pace_ns)) RelearnOtherWork(memory);
  if (memory.trial > memory.settled && IsLowerBound(typical)) {
    if (memory.unspared < kUnsparedPairs) {
      ++memory.unspared;
      memory.spared_ns = 0;
    }
    // A block that ends within a burst has delayed all of it.
    const double burst = static_cast<double>(held.launches) / std::max<std::uint16_t>(held.bursts, 1);
    const double delayed_ns = static_cast<double>(pace_ns) * std::max(static_cast<double>(other.launches), burst);
    memory.spared_ns += static_cast<std::uint64_t>(kSparedPart * (1 - memory.longest) * delayed_ns);
  }
  if (memory.known_pace_ns == 0) memory.known_pace_ns = pace_ns;
  Learn(memory, {typical, whole, reports_waits, OthersGain(held, other)});
}

void Benefit::Note(BenefitMemory& memory, bool open, std::uint64_t& next_decision_ns) const {
  memory.open = open;
  if (memory.holds && IsWhileItWaits(memory.mode) && !memory.waits.now) {
    next_decision_ns = std::min(next_decision_ns, std::max(ShutUntilNs(memory), LingersUntilNs(memory.waits)));
  }
  if (Measures() && IsMeasured(memory) && memory.idle_since_ns != 0 && IsLastRequest(memory)) {
    next_decision_ns = std::min(next_decision_ns, RequestEndsAt(memory) + 1);
  }
  if (!Measures() || !open || !memory.contended) return;
  std::uint64_t left = std::max(memory.next_trial_ns, now_ns_ + kCostNs) - now_ns_;
  // A trial is put off only until others are tracked, and it is seen what they do.
  if (memory.others_aside) left = std::max(memory.next_trial_ns, now_ns_) - now_ns_;
  if (now_ns_ - memory.watched_ns < kSettleNs) left = memory.watched_ns + kSettleNs - now_ns_;
  if (IsMeasured(memory)) {
    const double slow = ClearlySlowerAt(memory) - ComparedNs(memory);
    left = kLongestBlockNs - std::min({memory.block.busy_ns, memory.burst_ns, kLongestBlockNs});
    if (memory.block.launches == 0 && memory.mode != Mode::kHeld) left = std::min(left, kFirstCheckNs);
    if (slow < static_cast<double>(left)) left = static_cast<std::uint64_t>(std::max(slow, 0.0)) + 1;
  }
  left = std::max(left, kNsPerMs);
  next_decision_ns = std::min(next_decision_ns, now_ns_ + left);
}

bool Benefit::IsFreeKnown(const BenefitMemory& memory) {
  return memory.settled == kCheapest && memory.mode == kCheapest && memory.Of(kCheapest).is_known &&
         memory.wait_ns != 0 && !memory.is_put_off && !memory.repeats && !IsMeasured(memory) && memory.deadline_ns == 0;
}

bool Benefit::MayLeaveOthers(const BenefitMemory& memory, std::uint64_t& next_decision_ns) const {
  if (!Measures() || !IsFreeKnown(memory) || memory.others != memory.known_with) return false;
  if (now_ns_ < memory.next_trial_ns) return true;
  // A trial is due: it may not begin yet, or there is nothing to try.
  if (memory.contended) return memory.spared_ns != 0;
  const std::uint64_t watched_until_ns = memory.watched_ns + kWatchNs;
  if (now_ns_ < watched_until_ns) next_decision_ns = std::min(next_decision_ns, watched_until_ns);
  return now_ns_ >= watched_until_ns;
}

void Benefit::LeaveOthers(BenefitMemory& memory, const Work& work) const {
  if (now_ns_ >= memory.next_trial_ns)
    memory.next_trial_ns = now_ns_ + std::clamp(memory.spared_ns, kShortestWaitNs, kLongestWaitNs);
  NoteWork(memory, work);
}

bool Benefit::MayStayAside(const BenefitMemory& memory) const {
  return Measures() && memory.settled == kCheapest && now_ns_ <= memory.next_trial_ns;
}

Rest RestOf(const BenefitMemory& memory, Mode mode) {
  if (!IsWhileItWaits(mode) || mode >= Benefit::kRestMode) return {};
  const std::uint64_t ends_ns = memory.idle_since_ns == 0 ? kNever : RequestEndsAt(memory) + 1;
  if (memory.seen_ns >= ends_ns) return {.is_on = memory.waits.lead.ns >= kRestLeadNs};
  const std::uint64_t near_until_ns = NearUntilNs(memory.waits);
  if (memory.seen_ns < near_until_ns) return {.is_on = false, .ask_again_ns = std::min(ends_ns, near_until_ns)};
  const std::uint64_t ahead_ns = AheadNs(mode);
  const std::uint64_t wait_ns = NextWaitNs(memory.waits, memory.seen_ns);
  const bool is_on = memory.waits.shut_since_ns == 0 && memory.seen_ns + ahead_ns < wait_ns;
  const std::uint64_t again_ns = is_on ? AskAgainNs(memory.waits, wait_ns - ahead_ns, memory.seen_ns) : kNever;
  return {.is_on = is_on, .ask_again_ns = std::min(ends_ns, again_ns)};
}

bool NeedsCount(const BenefitMemory& memory) {
  return IsMeasured(memory) || AheadNs(memory.mode) != 0;
}

bool IsMeasured(const BenefitMemory& memory) {
  return memory.place != 0;
}

bool Recall(BenefitSlot& benefit, Mode answer) {
  if (IsSettled(*benefit)) return false;
  benefit.Use().settled = answer;
  benefit.Use().unspared = Benefit::kUnsparedPairs;
  return true;
}

std::optional<double> CostPercent(const BenefitMemory& memory, Mode mode) {
  const BenefitMemory::Comparison& known = memory.Of(mode);
  if (known.others_pairs < Benefit::kFewestPairs) return std::nullopt;
  return -100 * std::expm1(-static_cast<double>(known.others_gain));
}

double SlowerPercent(float ratio) {
  return 100 * std::expm1(static_cast<double>(ratio));
}

}  // namespace xschedd::policy
