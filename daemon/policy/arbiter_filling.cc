// How many groups have their turn at a time, where that is left to the daemon (filling.h): what it needs to know of
// groups and tenants. Thread rule: arbiter.h.
#include <algorithm>
#include <cmath>
#include <limits>

#include "daemon/policy/arbiter.h"

namespace xschedd::policy {
namespace {

constexpr double kParts = 1e6;

}  // namespace

// The only device of a group's clients; kNobody: it has several, or none.
std::uint32_t Arbiter::OnlyDeviceOf(std::uint32_t group) const {
  const auto tenants = roster_.TenantsOf(group);
  if (tenants.empty()) return kNobody;
  const std::uint32_t first = state_->tenants[tenants.front()].device;
  const bool is_only =
      std::all_of(tenants.begin(), tenants.end(), [&](std::uint32_t i) { return state_->tenants[i].device == first; });
  return is_only ? first : kNobody;
}

// Only where groups take turns: a decision visits hundreds of groups. A group on several devices ends no launches.
void Arbiter::CountLaunches(std::uint32_t group) {
  const GroupMemory& before = state_->groups[group].memory;
  GroupMemory& next = decision_->memory[group];
  next.turn_launches = before.turn_launches;
  next.launched = before.launched;
  next.ran_ns = before.ran_ns;
  const std::uint32_t only = OnlyDeviceOf(group);
  if (only == kNobody || devices_[only].usual_limit == 0) return;
  Turns::NoteBurst(next, TurnWorkOf(group));
  std::uint64_t launched = 0;
  std::uint64_t ran_ns = 0;
  for (const std::uint32_t i : roster_.TenantsOf(group)) {
    launched += state_->tenants[i].launched;
    ran_ns += state_->tenants[i].ran_ns;
  }
  Turns::CountLaunches(next, launched, ran_ns);
  if (before.takes_turns && devices_[only].counted) next.turn_launches[*devices_[only].counted] += launched;
}

// How many groups have their turn at a time, on each device.
void Arbiter::FindLimits() {
  for (std::uint32_t i = 0; i < devices_.size(); ++i) {
    if (!devices_[i].is_limit_free) continue;
    FillingMemory& memory = decision_->devices[i].filling;
    if (filling_.IsPairOver(memory)) {
      filling_.EndPair(memory, GainOn(i));
      if (Filling::HasTriedMore(memory)) NoteGains(i);
    }
    EndRound(i);
    if (filling_.IsDue(memory)) {
      if (memory.pairs == 0) ForgetTurns(i);
      filling_.Begin(memory);
    }
    devices_[i].limit = filling_.AtATime(memory);
  }
}

void Arbiter::ForgetTurns(std::uint32_t device) {
  for (std::uint32_t group = 0; group < groups_.size(); ++group)
    if (OnlyDeviceOf(group) == device) decision_->memory[group].turn_launches = {};
}

void Arbiter::EndRound(std::uint32_t device) {
  FillingMemory& filling = decision_->devices[device].filling;
  const float gain = filling.best_gain;
  const FillingMemory::Trial best = filling_.EndRound(filling);
  if (best.group == 0) return;
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    if (state_->groups[group].id != best.group) continue;
    decision_->memory[group].joins = !best.is_fewer;
    decision_->memory[group].joins_gain = gain;
  }
}

// In the present trial, against what is in force: a logarithm, in parts of 1 / kParts. Gains add up as whole numbers:
// that does not depend on the order of the groups.
std::optional<std::int64_t> Arbiter::FasterIn(std::uint32_t device, std::uint32_t group) const {
  const auto& [usual_ns, trial_ns] = decision_->devices[device].filling.counted_ns;
  const auto& [usual, trial] = decision_->memory[group].turn_launches;
  if (usual == 0 || trial == 0 || usual_ns == 0 || trial_ns == 0 || OnlyDeviceOf(group) != device) return std::nullopt;
  const auto rate = [](std::uint64_t launches, std::uint64_t ns) {
    return static_cast<double>(launches) / static_cast<double>(ns);
  };
  return std::llround(kParts * std::log(rate(trial, trial_ns) / rate(usual, usual_ns)));
}

std::optional<Filling::Gain> Arbiter::GainOn(std::uint32_t device) const {
  std::int64_t sum = 0;
  std::int64_t count = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    const auto faster = FasterIn(device, group);
    if (!faster) continue;
    const std::int64_t with_more = decision_->devices[device].filling.trial.is_fewer ? -*faster : *faster;
    sum += with_more;
    least = std::min(least, with_more);
    ++count;
  }
  if (count == 0) return std::nullopt;
  return Filling::Gain{.mean = static_cast<double>(sum) / (kParts * static_cast<double>(count)),
                       .least = static_cast<double>(least) / kParts};
}

void Arbiter::NoteGains(std::uint32_t device) {
  for (std::uint32_t group = 0; group < groups_.size(); ++group)
    if (const auto faster = FasterIn(device, group)) decision_->memory[group].gains_beside = *faster > 0;
}

// Which groups take turns on each device, and how many of them at a time the more important ones tolerate.
void Arbiter::FindTakers() {
  if (std::none_of(devices_.begin(), devices_.end(), [](const auto& device) { return device.limit != 0; })) return;
  for (DeviceView& device : devices_)
    device.takers.most = holders_.Measures() ? Filling::kMostAtATime : 1;
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    if (state_->groups[group].hold) continue;
    for (const std::uint32_t i : roster_.TenantsOf(group)) {
      const Tenant& tenant = state_->tenants[i];
      DeviceView& device = devices_[tenant.device];
      if (device.limit == 0) continue;
      if (device.is_limit_free && HasOthersBelow(tenant) && !IsAway(tenant))
        device.takers.most = std::min(device.takers.most, MostBelow(group));
      if (!NeedsTurns(i) || !IsRecent(tenant)) continue;
      if (device.takes_turns.Add(group, groups_[group].rank)) AddTaker(group, tenant.device);
    }
  }
}

void Arbiter::AddTaker(std::uint32_t group, std::uint32_t device) {
  DeviceView& view = devices_[device];
  if (view.takes_turns.count == 1) view.takers = {.most = view.takers.most};  // the first of its rank
  view.takers.count = view.takes_turns.count;
  view.takers.who += HashOf(state_->groups[group].id);
  if (!view.is_limit_free || OnlyDeviceOf(group) != device) return;
  const bool joins = decision_->memory[group].joins;
  view.takers.joiners += joins ? 1 : 0;
  const std::uint64_t id = state_->groups[group].id;
  if (!Filling::IsUntried(decision_->devices[device].filling, id)) return;
  if (!joins && !decision_->memory[group].gains_beside) return;
  std::uint64_t& candidate = view.takers.candidates[joins ? 1 : 0];
  candidate = candidate == 0 ? id : std::min(candidate, id);
}

// Whose launches count, and who joins others' turns: not the turns of more important groups, of whom none was asked.
void Arbiter::FindJoiners() {
  if (std::none_of(devices_.begin(), devices_.end(), [](const auto& device) { return device.is_limit_free; })) return;
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    GroupView& view = groups_[group];
    const std::uint32_t only = view.tracked ? OnlyDeviceOf(group) : kNobody;
    if (only == kNobody || !devices_[only].is_limit_free || view.rank < devices_[only].takes_turns.rank) continue;
    DeviceView& device = devices_[only];
    GroupMemory& memory = decision_->memory[group];
    const auto tenants = roster_.TenantsOf(group);
    memory.takes_turns = NeedsTurns(tenants.front());
    const FillingMemory& filling = decision_->devices[only].filling;
    view.joins = memory.takes_turns && Filling::Joins(filling, state_->groups[group].id, memory.joins);
    if (!view.joins) continue;
    if (std::any_of(tenants.begin(), tenants.end(), [this](auto i) { return IsRecent(state_->tenants[i]); }))
      ++device.joiners;
    turns_.NoteReturned(memory);
    memory.last_turn_ns = now_ns_;  // behind all others, once it does not join any more
    view.keeps_turn = false;
    if (device.lender == group) device.lender = kNobody;
  }
}

std::uint32_t Arbiter::MostBelow(std::uint32_t group) const {
  if (!holders_.Measures(group)) return 1;
  const BenefitMemory& benefit = *decision_->memory[group].benefit;
  return Filling::MostAtATime(state_->settings.tolerance_percent, Benefit::UsualSpellNs(benefit));
}

void Arbiter::NoteFilling() {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    DeviceView& device = devices_[i];
    if (!device.is_limit_free) continue;
    device.takers.compete = device.groups_in_turn > 1 || (device.groups_in_turn == 1 && device.awaited_by != kNobody);
    filling_.Note(decision_->devices[i].filling, device.takers, decision_->next_decision_ns);
  }
}

}  // namespace xschedd::policy
