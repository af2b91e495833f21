// Stepping aside: being tracked costs an eager program a few percent of its host's time
// (docs/explanation/performance.md). Where each group that has others below it is known to gain nothing by holding them
// (`free`, benefit.h), it decides nothing when those others are busy. So they are untracked until the next trial.
//
//   - Only groups with nobody below them, and on all their devices or on none. Those above stay tracked: if one begins
//     to do other work, that is noticed at once.
//   - One without recent work stays tracked, as does a new one: once it has work, all are tracked again, since what is
//     known was measured beside others.
//   - All are also tracked where anybody has a deadline, is kept to a share, or has a claim and nobody below: these are
//     measured all the time.
// Thread rule: arbiter.h.
#include <algorithm>

#include "daemon/policy/arbiter.h"

namespace xschedd::policy {

// Of the devices that are marked, leaves those on which each tenant may be aside, and of whose groups none is tracked
// because of another device.
template <typename MayBeAside>
void Arbiter::FindDevicesAside(MayBeAside may_be_aside) {
  for (const Tenant& tenant : state_->tenants) {
    bool& is_aside = devices_[tenant.device].is_aside;
    if (!is_aside || state_->groups[tenant.group].hold) continue;
    const bool is_counted = state_->groups[tenant.group].accounted && !HasOthersBelow(tenant);
    is_aside = tenant.deadline_after_ns == 0 && !share_.Keeps(tenant.group) && !is_counted && may_be_aside(tenant);
  }
  for (bool changes = devices_.size() > 1; changes;) {
    changes = false;
    for (std::uint32_t group = 0; group < groups_.size(); ++group) {
      const auto tenants = roster_.TenantsOf(group);
      const auto is_aside = [this](std::uint32_t i) { return devices_[state_->tenants[i].device].is_aside; };
      const bool is_whole = std::none_of(tenants.begin(), tenants.end(), is_aside) ||
                            std::all_of(tenants.begin(), tenants.end(), is_aside);
      if (is_whole || state_->groups[group].hold || !IsOrMayBeAside(group)) continue;
      for (const std::uint32_t i : tenants)
        devices_[state_->tenants[i].device].is_aside = false;
      changes = true;
    }
  }
}

bool Arbiter::IsOrMayBeAside(std::uint32_t group) const {
  if (IsAboveOthers(group)) return false;
  const auto tenants = roster_.TenantsOf(group);
  return groups_[group].is_aside ||
         std::any_of(tenants.begin(), tenants.end(), [this](auto i) { return IsRecent(state_->tenants[i]); });
}

std::uint64_t Arbiter::HashOfTenants(std::uint32_t group) const {
  std::uint64_t hash = 0;
  for (const std::uint32_t i : roster_.TenantsOf(group))
    hash += HashOf(state_->tenants[i].client);
  return std::max<std::uint64_t>(hash, 1);
}

bool Arbiter::WasAside(std::uint32_t group) const {
  const Group& of = state_->groups[group];
  return of.memory.aside != 0 && !of.hold && of.memory.aside == HashOfTenants(group);
}

// Marks the devices of groups that are aside.
void Arbiter::MarkDevicesAside() {
  for (DeviceView& device : devices_)
    device.is_aside = false;
  for (const Tenant& tenant : state_->tenants)
    if (groups_[tenant.group].is_aside) devices_[tenant.device].is_aside = true;
}

// Finds the groups that are still aside, going by what was known before this decision.
void Arbiter::FindAside() {
  if (!is_by_priority_ || !state_->settings.step_aside) return;
  bool any = false;
  for (std::uint32_t group = 0; group < groups_.size(); ++group)
    if (WasAside(group)) groups_[group].is_aside = any = true;
  if (!any) return;
  MarkDevicesAside();
  FindDevicesAside([this](const Tenant& tenant) {
    if (HasOthersBelow(tenant)) return holders_.MayStayAside(tenant.group);
    return groups_[tenant.group].is_aside || !IsRecent(tenant);
  });
  for (std::uint32_t group = 0; group < groups_.size(); ++group)
    groups_[group].is_aside = groups_[group].is_aside && AreAside(group);
}

// Decides which groups step aside now.
void Arbiter::StepAside() {
  if (!state_->settings.step_aside) return;
  const auto& observed = holders_.Observed();
  if (std::none_of(observed.begin(), observed.end(), [this](auto group) { return holders_.MayLeaveOthers(group); }))
    return;
  for (DeviceView& device : devices_)
    device.is_aside = true;
  FindDevicesAside(
      [this](const Tenant& tenant) { return !HasOthersBelow(tenant) || holders_.MayLeaveOthers(tenant.group); });
  bool any = false;
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    GroupView& view = groups_[group];
    if (!view.tracked || !AreAside(group) || !IsOrMayBeAside(group)) continue;
    view.tracked = false;
    view.is_aside = any = true;
    Forget(group);
    for (const std::uint32_t i : roster_.TenantsOf(group)) {
      const Tenant& tenant = state_->tenants[i];
      if (!tenant.busy) AddLowest(devices_[tenant.device].lowest_busy, state_->groups[group].priority);
    }
  }
  if (!any) return;
  MarkDevicesAside();
  for (const std::uint32_t group : observed)
    if (const Benefit::Work work = WorkOf(group); work.others_aside) holders_.LeaveOthers(group, work, IsOpen(group));
}

}  // namespace xschedd::policy
