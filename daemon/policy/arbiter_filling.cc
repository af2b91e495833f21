// How many groups have their turn at a time, where that is left to the daemon (filling.h): what it needs to know of
// groups and tenants. Thread rule: arbiter.h.
#include <algorithm>
#include <cmath>
#include <limits>

#include "daemon/policy/arbiter.h"

namespace xschedd::policy {

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
  if (before.turn_since_ns != 0 && devices_[only].counted) next.turn_launches[*devices_[only].counted] += launched;
}

// How many groups have their turn at a time, on each device.
void Arbiter::FindLimits() {
  for (std::uint32_t i = 0; i < devices_.size(); ++i) {
    if (!devices_[i].is_limit_free) continue;
    FillingMemory& memory = decision_->devices[i].filling;
    if (filling_.IsPairOver(memory)) filling_.EndPair(memory, FasterIn(i));
    if (filling_.IsDue(memory)) {
      filling_.Begin(memory);
      for (std::uint32_t group = 0; group < groups_.size(); ++group)
        if (OnlyDeviceOf(group) == i) decision_->memory[group].turn_launches = {};
    }
    devices_[i].limit = filling_.AtATime(memory);
  }
}

// Filling::EndPair's ratio. As a sum of whole numbers: that does not depend on the order of the groups.
std::optional<double> Arbiter::FasterIn(std::uint32_t device) const {
  constexpr double kParts = 1e6;
  const FillingMemory& filling = decision_->devices[device].filling;
  const auto& [usual_ns, trial_ns] = filling.counted_ns;
  const int with_more = filling.trial > filling.settled ? 1 : -1;
  std::int64_t sum = 0;
  std::int64_t count = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    const auto& [usual, trial] = decision_->memory[group].turn_launches;
    if (usual == 0 || trial == 0 || usual_ns == 0 || trial_ns == 0 || OnlyDeviceOf(group) != device) continue;
    const auto rate = [](std::uint64_t launches, std::uint64_t ns) {
      return static_cast<double>(launches) / static_cast<double>(ns);
    };
    const double ratio = std::log(rate(trial, trial_ns) / rate(usual, usual_ns));
    const std::int64_t faster = with_more * std::llround(kParts * ratio);
    sum += faster;
    least = std::min(least, faster);
    ++count;
  }
  if (count == 0) return std::nullopt;
  const double mean = static_cast<double>(sum) / (kParts * static_cast<double>(count));
  return with_more * Filling::GainOf(mean, static_cast<double>(least) / kParts);
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
      if (!TakesTurns(i) || !IsRecent(tenant)) continue;
      if (!device.takes_turns.Add(group, groups_[group].rank)) continue;
      device.takers.count = device.takes_turns.count;
      const std::uint64_t before = device.takers.count == 1 ? 0 : device.takers.who;  // 1: the first of its rank
      device.takers.who = before + HashOf(state_->groups[group].id);
    }
  }
}

std::uint32_t Arbiter::MostBelow(std::uint32_t group) const {
  if (!holders_.Measures(group)) return 1;
  const BenefitMemory& benefit = *decision_->memory[group].benefit;
  return Filling::MostAtATime(state_->settings.tolerance_percent, std::max(benefit.usual_spell_ns, benefit.spell_ns));
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
