// The weights in force: what an owner has is divided among those of its groups that have work. Thread rule: share.h.
#include <algorithm>

#include "daemon/policy/share.h"

namespace xschedd::policy {

bool Share::HaveOneOwner(std::uint32_t group, std::uint32_t other) const {
  const std::uint32_t owner = state_->groups[group].owner;
  return group == other || (owner != kNoOwner && owner == state_->groups[other].owner);
}

void Share::Weigh() {
  first_of_owner_.clear();
  next_of_owner_.assign(groups_.size(), kNone);
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    const Group& view = state_->groups[group];
    groups_[group].weight = view.weight * kWeightParts;
    if (!groups_[group].kept || view.owner == kNoOwner) continue;
    if (first_of_owner_.size() <= view.owner) first_of_owner_.resize(view.owner + 1, kNone);
    next_of_owner_[group] = first_of_owner_[view.owner];
    first_of_owner_[view.owner] = group;
  }
  for (const std::uint32_t first : first_of_owner_)
    if (first != kNone && next_of_owner_[first] != kNone) WeighOwner(first);
}

void Share::WeighOwner(std::uint32_t first) {
  const auto counts = [&](std::uint32_t tenant) { return ClassOf(tenant).kept && ClassOf(tenant).several_owners; };
  for (std::uint32_t group = first; group != kNone; group = next_of_owner_[group]) {
    for (const std::uint32_t index : roster_->TenantsOf(group)) {
      Class& entry = ClassOf(index);
      if (!counts(index)) continue;
      if (entry.weighed_owner != first) {
        entry.weighed_owner = first;
        entry.counted = kNone;
        entry.owner = {};
      }
      if (present_[index] == 0 || entry.counted == group) continue;
      entry.counted = group;
      entry.owner.Add(state_->groups[group].weight);
    }
  }
  for (std::uint32_t group = first; group != kNone; group = next_of_owner_[group]) {
    const std::uint64_t own = state_->groups[group].weight;
    std::uint64_t parts = own * kWeightParts;
    for (const std::uint32_t index : roster_->TenantsOf(group)) {
      if (!counts(index)) continue;
      OwnerWeight owner = ClassOf(index).owner;
      // One without work is weighed as if it had some.
      if (!IsCountedIn(group, class_of_[index])) owner.Add(own);
      // On several devices, where its owner's groups crowd most: nowhere has an owner more than its part.
      parts = std::min(parts, owner.PartOf(own, kWeightParts));
    }
    groups_[group].weight = std::max<std::uint64_t>(parts, 1);
  }
}

bool Share::IsCountedIn(std::uint32_t group, std::uint32_t entry) const {
  const auto tenants = roster_->TenantsOf(group);
  return std::any_of(tenants.begin(), tenants.end(),
                     [&](std::uint32_t index) { return class_of_[index] == entry && present_[index] != 0; });
}

}  // namespace xschedd::policy
