#include "daemon/policy/filling.h"

#include <cmath>

namespace xschedd::policy {
namespace {

void Forget(FillingMemory& memory) {
  memory.place = 0;
  memory.pairs = 0;
}

void BeginRound(FillingMemory& memory) {
  Forget(memory);
  memory.next_trial = 0;
  memory.tried_group = 0;
  memory.trials = 0;
  memory.is_round_over = false;
  memory.best = {};
}

// How many have a device at a time in the trial, but for those who join anyway.
std::uint32_t AtATimeIn(const FillingMemory::Trial& trial) {
  return trial.number + (trial.group != 0 && !trial.is_fewer ? 1 : 0);
}

// The least gain for which more of them at a time are worth it: a logarithm.
double WorthOf(const FillingMemory::Trial& trial) {
  return std::log1p((trial.is_fewer ? Filling::kStillWorthPercent : Filling::kWorthPercent) / 100);
}

// What of it counts.
double GainOf(const FillingMemory::Trial& trial, const Filling::Gain& gain) {
  if (trial.group == 0) return std::min(gain.mean, gain.least + Filling::kAhead);
  return gain.least < -Filling::kMostLost ? gain.least : gain.mean;
}

// The pairs that a trial needs for it.
std::uint32_t PairsFor(const FillingMemory::Trial& trial, const Filling::Gain& gain) {
  const double counts = GainOf(trial, gain);
  const double worse = trial.is_fewer ? counts - WorthOf(trial) : WorthOf(trial) - counts;
  // What one of several groups seems to lose by joining may be by chance.
  const bool is_close = trial.group != 0 && counts < gain.mean && gain.mean > WorthOf(trial);
  if (is_close || std::abs(worse) <= Filling::kNotClose) return Filling::kPairs;
  if (worse > 2 * Filling::kPlain) return 1;
  if (worse > Filling::kPlain) return 2;
  return worse < -Filling::kPlain ? Filling::kFewestPairs : Filling::kFewerPairs;
}

}  // namespace

std::uint32_t Filling::MostAtATime(std::uint32_t tolerance_percent, std::uint64_t spell_ns) {
  const std::uint64_t more = std::min<std::uint64_t>(spell_ns, kNsPerS) * tolerance_percent / 100 / kAnotherNs;
  return 1 + static_cast<std::uint32_t>(std::min<std::uint64_t>(more, kMostAtATime - 1));
}

std::uint64_t Filling::BlockNs(const FillingMemory& memory) const {
  return kSettleNs + std::min(memory.groups * turn_ns_, kLongestBlockNs);
}

std::optional<std::size_t> Filling::Advance(FillingMemory& memory) const {
  const std::uint64_t passed = memory.seen_ns == 0 ? 0 : now_ns_ - memory.seen_ns;
  memory.seen_ns = now_ns_;
  if (!memory.competed) return std::nullopt;
  if (memory.place == 0) {
    memory.left_ns -= std::min(passed, memory.left_ns);
    return std::nullopt;
  }
  const bool counts = memory.block_ns >= kSettleNs;
  const std::size_t sum = memory.is_trial ? 1 : 0;
  memory.block_ns += passed;
  if (counts) memory.counted_ns[sum] += passed;
  if (memory.block_ns >= BlockNs(memory)) {
    memory.block_ns = 0;
    memory.is_trial = !memory.is_trial;
    ++memory.place;
  }
  return counts ? std::optional(sum) : std::nullopt;
}

bool Filling::IsPairOver(const FillingMemory& memory) const {
  return memory.place > 2;
}

void Filling::EndPair(FillingMemory& memory, const std::optional<Gain>& of_all) const {
  memory.place = 0;
  if (!of_all) {
    memory.left_ns = kShortestWaitNs;
    Forget(memory);
    return;
  }
  ++memory.pairs;
  const FillingMemory::Trial trial = memory.trial;
  const double gain = GainOf(trial, *of_all);
  memory.trial_gain = static_cast<float>(gain);
  if (memory.pairs < PairsFor(trial, *of_all)) return;
  Forget(memory);
  ++memory.trials;
  memory.left_ns = kFirstWaitNs;
  if (trial.group == 0) {
    memory.gain = memory.trial_gain;
    memory.gain_of = std::max(trial.number, memory.settled);
    memory.next_trial = trial.is_fewer ? 2 : 1;
  } else {
    memory.next_trial = 2;
    memory.tried_group = trial.group;
  }
  const double better = trial.is_fewer ? WorthOf(trial) - gain : gain - WorthOf(trial);
  const float best_gain = memory.best.is_fewer ? -memory.best_gain : memory.best_gain;
  const float its_gain = trial.is_fewer ? -memory.trial_gain : memory.trial_gain;
  if (better <= 0 || (memory.best.number != 0 && its_gain <= best_gain)) return;
  memory.best = trial;
  memory.best_gain = memory.trial_gain;
  memory.is_round_over = trial.group == 0;
}

// All decisions of one instant go by the same answers.
FillingMemory::Trial Filling::EndRound(FillingMemory& memory) const {
  if (!memory.is_round_over || memory.number_ns == now_ns_) return {};
  const FillingMemory::Trial best = memory.best;
  const bool changes = best.number != 0;
  memory.wait_ns = changes ? 0 : std::clamp(2 * memory.wait_ns, kShortestWaitNs, kLongestWaitNs);
  memory.left_ns = changes ? kFirstWaitNs : memory.wait_ns * memory.trials;
  if (changes) memory.settled = best.number;
  BeginRound(memory);
  return best;
}

// Somebody has to have turns in which others can join: two groups at least.
bool Filling::MayJoin(const FillingMemory& memory) {
  return memory.joiners < memory.most && memory.joiners + 1 < memory.groups;
}

FillingMemory::Trial Filling::NextTrial(const FillingMemory& memory) {
  if (memory.pairs != 0) return memory.trial;
  const std::uint32_t joiners = MayJoin(memory) ? memory.joiners : 0;
  const std::uint32_t most = std::min(memory.most, memory.groups);
  const std::uint32_t at_a_time = memory.settled + joiners;
  if (at_a_time > most) return {};
  if (memory.next_trial == 0 && at_a_time < most) return {.number = memory.settled + 1};
  if (memory.next_trial <= 1 && memory.settled > 1) return {.number = memory.settled - 1, .is_fewer = true};
  const auto& [next, next_joiner] = memory.candidates;
  const bool is_room = MayJoin(memory) && joiners + 2 < memory.groups && (at_a_time < most || memory.settled > 1);
  if (next_joiner != 0 && joiners != 0 && (!is_room || next == 0 || next_joiner < next))
    return {.number = memory.settled, .group = next_joiner, .is_fewer = true};
  if (next == 0 || !is_room) return {};
  return {.number = at_a_time < most ? memory.settled : memory.settled - 1, .group = next};
}

bool Filling::IsDue(const FillingMemory& memory) const {
  return memory.place == 0 && memory.competed && memory.left_ns == 0 && NextTrial(memory).number != 0;
}

// The number in force and the trial come first alternately.
void Filling::Begin(FillingMemory& memory) const {
  if (memory.pairs == 0) memory.counted_ns = {};
  memory.trial = NextTrial(memory);
  memory.place = 1;
  memory.is_trial = memory.pairs % 2 != 0;
  memory.block_ns = 0;
}

std::uint32_t Filling::AtATime(FillingMemory& memory) const {
  if (memory.number_ns == now_ns_) return memory.number;
  const bool is_trial = memory.place != 0 && memory.is_trial;
  memory.number_ns = now_ns_;
  memory.may_join = MayJoin(memory);
  memory.toggled = is_trial ? memory.trial.group : 0;
  const std::uint32_t most = memory.most - (memory.may_join ? memory.joiners : 0);
  memory.number = is_trial ? memory.trial.number : std::min(memory.settled, most);
  return memory.number;
}

void Filling::Note(FillingMemory& memory, const Takers& takers, std::uint64_t& next_decision_ns) const {
  memory.competed = false;
  if (takers.who != memory.others) {
    memory.others = takers.who;
    memory.others_since_ns = now_ns_;
  }
  const bool are_others = takers.who != memory.who;
  if (are_others && (takers.count == 0 || now_ns_ - memory.others_since_ns < kOthersLastNs)) return;
  memory.competed = takers.compete;
  const bool searches = memory.place != 0 || memory.pairs != 0;
  if (are_others || (searches && std::max(memory.settled, AtATimeIn(memory.trial)) + takers.joiners > takers.most)) {
    memory.left_ns = searches ? kInterruptedNs : std::clamp(memory.left_ns, kFirstWaitNs, kInterruptedNs);
    BeginRound(memory);
  }
  if (are_others) {
    const std::uint32_t settled = memory.settled;
    // More than there are would never be tried with fewer.
    memory.settled = takers.who == memory.who_before ? memory.settled_before : std::min(settled, takers.count);
    memory.who_before = memory.who;
    memory.settled_before = settled;
    memory.gain_of = 0;
  }
  memory.who = takers.who;
  memory.groups = takers.count;
  memory.joiners = takers.joiners;
  memory.most = takers.most;
  memory.candidates = takers.candidates;
  if (!takers.compete) return;
  if (memory.place == 0 && memory.trials != 0 && NextTrial(memory).number == 0) memory.is_round_over = true;
  std::uint64_t left_ns = memory.left_ns;
  if (memory.place != 0) {
    const std::uint64_t end_ns = memory.block_ns < kSettleNs ? kSettleNs : BlockNs(memory);
    left_ns = end_ns - std::min(end_ns, memory.block_ns);
  } else if (NextTrial(memory).number == 0) {
    return;
  }
  next_decision_ns = std::min(next_decision_ns, now_ns_ + std::max<std::uint64_t>(left_ns, kNsPerMs));
}

}  // namespace xschedd::policy
