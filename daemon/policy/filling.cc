#include "daemon/policy/filling.h"

#include <cmath>

#include "daemon/policy/average.h"

namespace xschedd::policy {
namespace {

void Forget(FillingMemory& memory) {
  memory.place = 0;
  memory.pairs = 0;
  memory.mean = memory.variance = 0;
}

void BeginRound(FillingMemory& memory) {
  Forget(memory);
  memory.next_trial = 0;
  memory.tried_group = 0;
  memory.trials = 0;
}

// How many have a device at a time in the trial, but for those who join anyway.
std::uint32_t AtATimeIn(const FillingMemory::Trial& trial) {
  return trial.number + (trial.group != 0 && !trial.is_fewer ? 1 : 0);
}

// Whether the pairs so far ask for the trial; nullopt: not clear yet.
std::optional<bool> Verdict(const FillingMemory& memory) {
  const bool is_in_force = memory.trial.is_fewer;  // what lets more of them run
  const double gain = is_in_force ? -memory.mean : memory.mean;
  const double worth = std::log1p((is_in_force ? Filling::kStillWorthPercent : Filling::kWorthPercent) / 100);
  const double away = std::abs(gain - worth);
  const std::uint32_t fewest = away > Filling::kPlain ? Filling::kFewestPlainPairs : Filling::kFewestPairs;
  const bool is_clear = memory.pairs >= fewest && away >= 2 * std::sqrt(memory.variance / memory.pairs);
  if (!is_clear && memory.pairs < Filling::kPairs) return std::nullopt;
  return (gain > worth) != is_in_force;
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

std::optional<float> Filling::EndPair(FillingMemory& memory, std::optional<double> ratio) const {
  memory.place = 0;
  if (!ratio) {
    memory.left_ns = kShortestWaitNs;
    return std::nullopt;
  }
  ++memory.pairs;
  Average(memory.mean, memory.variance, static_cast<float>(*ratio), 1.0F / static_cast<float>(memory.pairs));
  const std::optional<bool> changes = Verdict(memory);
  if (!changes) return std::nullopt;
  const FillingMemory::Trial trial = memory.trial;
  const float gain = trial.is_fewer ? -memory.mean : memory.mean;
  if (trial.group == 0) {
    memory.gain = gain;
    memory.gain_of = std::max(trial.number, memory.settled);
    memory.next_trial = trial.is_fewer ? 2 : 1;
  } else {
    memory.next_trial = 2;
    memory.tried_group = trial.group;
  }
  memory.left_ns = kFirstWaitNs;
  ++memory.trials;
  Forget(memory);
  if (!*changes) return std::nullopt;
  memory.settled = trial.number;
  memory.wait_ns = 0;
  BeginRound(memory);
  return gain;
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
  if (memory.candidate == 0 || !MayJoin(memory)) return {};
  if (memory.candidate_joins) return {.number = memory.settled, .group = memory.candidate, .is_fewer = true};
  if (joiners + 2 >= memory.groups) return {};
  if (at_a_time < most) return {.number = memory.settled, .group = memory.candidate};
  return memory.settled > 1 ? FillingMemory::Trial{.number = memory.settled - 1, .group = memory.candidate}
                            : FillingMemory::Trial{};
}

void Filling::EndRound(FillingMemory& memory) {
  memory.wait_ns = std::clamp(2 * memory.wait_ns, kShortestWaitNs, kLongestWaitNs);
  memory.left_ns = memory.wait_ns * memory.trials;
  BeginRound(memory);
}

bool Filling::IsDue(const FillingMemory& memory) const {
  return memory.place == 0 && memory.competed && memory.left_ns == 0 && NextTrial(memory).number != 0;
}

// The number in force and the trial come first alternately.
void Filling::Begin(FillingMemory& memory) const {
  memory.trial = NextTrial(memory);
  memory.place = 1;
  memory.is_trial = memory.pairs % 2 != 0;
  memory.block_ns = 0;
  memory.counted_ns = {};
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
  }
  memory.who = takers.who;
  memory.groups = takers.count;
  memory.joiners = takers.joiners;
  memory.most = takers.most;
  memory.candidate = takers.candidate;
  memory.candidate_joins = takers.candidate_joins;
  if (!takers.compete) return;
  if (memory.place == 0 && memory.trials != 0 && NextTrial(memory).number == 0) EndRound(memory);
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
