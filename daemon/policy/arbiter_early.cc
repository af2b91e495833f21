// Which groups go early (turns.h). Thread rule: arbiter.h.
#include <algorithm>
#include <tuple>

#include "daemon/policy/arbiter.h"

namespace xschedd::policy {

void Arbiter::FindEarly() {
  const bool may_be = std::any_of(devices_.begin(), devices_.end(), [](const auto& view) { return view.limit != 0; });
  if (!may_be && !was_early_) return;
  FindTurnHolders();
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    GroupMemory& memory = decision_->memory[group];
    if (memory.early_since_ns == 0) continue;
    const std::uint32_t device = OnlyDeviceOf(group);
    if (GoesOn(group)) {
      devices_[device].early_group = group;
      continue;
    }
    turns_.NoteEarlyOver(memory, !groups_[group].busy);
    groups_[group].keeps_turn = false;
    if (device != kNobody) decision_->devices[device].early_ended_ns = now_ns_;
  }
  for (std::uint32_t group = 0; group < groups_.size(); ++group)
    AskEarly(group);
  for (DeviceView& device : devices_)
    if (device.early_group != kNobody) groups_[device.early_group].is_early = true;
}

// A turn that begins now is not interrupted: those that wait have just been asked.
void Arbiter::FindTurnHolders() {
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    const std::uint64_t since_ns = decision_->memory[group].turn_since_ns;
    if (!groups_[group].tracked || since_ns == 0 || since_ns == now_ns_) continue;
    for (const std::uint32_t i : roster_.TenantsOf(group)) {
      const Tenant& tenant = state_->tenants[i];
      DeviceView& device = devices_[tenant.device];
      if (TakesTurns(i) && (tenant.busy || KeepsTurn(tenant))) device.in_turn.Add(group, groups_[group].rank);
    }
  }
}

// Equals have all the turns that there are.
bool Arbiter::IsTaken(const DeviceView& device, const Rank& rank) {
  return device.limit != 0 && device.in_turn.rank == rank && device.in_turn.count >= device.limit;
}

// Of a group that went early at the last decision. Also if the turn that it interrupted is over: the next one begins
// after it.
bool Arbiter::GoesOn(std::uint32_t group) const {
  const GroupView& view = groups_[group];
  const std::uint32_t only = OnlyDeviceOf(group);
  if (only == kNobody || !view.tracked || !(view.busy || view.keeps_turn)) return false;
  return devices_[only].limit != 0 && TakesTurns(roster_.TenantsOf(group).front()) &&
         turns_.EarlyUntil(decision_->memory[group]) > now_ns_;
}

// Of several that may go early, the one that has had work for longest does.
void Arbiter::AskEarly(std::uint32_t group) {
  const GroupView& view = groups_[group];
  const GroupMemory& memory = decision_->memory[group];
  const bool has_device = memory.turn_since_ns != 0 || memory.early_since_ns != 0;
  if (!view.tracked || !view.busy || has_device || share_.Keeps(group)) return;
  const std::uint32_t only = OnlyDeviceOf(group);
  if (only == kNobody || !IsTaken(devices_[only], view.rank)) return;
  DeviceView& device = devices_[only];
  const auto tenants = roster_.TenantsOf(group);
  const Turns::Work work = TurnWorkOf(group);
  if (work.idle_since_ns == 0 || !TakesTurns(tenants.front()) ||
      !turns_.MayGoEarly(memory, device.takes_turns.count, work))
    return;
  const std::uint64_t from_ns = decision_->devices[only].early_ended_ns + Turns::kEarlyApartNs;
  if (now_ns_ < from_ns && decision_->devices[only].early_ended_ns != 0) return DecideAgainAt(from_ns);
  const auto comes_before = [&](std::uint32_t other) {
    return decision_->memory[other].early_since_ns != 0 || std::tuple(BusySince(other), state_->groups[other].id) <
                                                               std::tuple(work.busy_since_ns, state_->groups[group].id);
  };
  if (device.early_group == kNobody || !comes_before(device.early_group)) device.early_group = group;
}

// Another group goes early on one of its devices.
bool Arbiter::IsInterrupted(std::uint32_t group) const {
  const auto tenants = roster_.TenantsOf(group);
  return std::any_of(tenants.begin(), tenants.end(), [&](std::uint32_t i) {
    const std::uint32_t early = devices_[state_->tenants[i].device].early_group;
    return early != kNobody && early != group;
  });
}

}  // namespace xschedd::policy
