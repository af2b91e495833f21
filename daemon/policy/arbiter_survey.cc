// Before admission: which clients are attached to which devices, each group's rank, which are tracked and which hold
// others. Thread rule: arbiter.h.
#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "daemon/policy/arbiter.h"

namespace xschedd::policy {
namespace {

// Keeps the memory of the benefit.
void Clear(GroupMemory& memory) {
  GroupMemory cleared{.benefit = std::move(memory.benefit)};
  cleared.benefit.Clear();
  memory = std::move(cleared);
}

}  // namespace

void Arbiter::Survey(const Rules& rules) {
  devices_.assign(state_->devices.size(), DeviceView{});
  decision_->devices.resize(devices_.size());
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    DeviceView& device = devices_[i];
    DeviceMemory& memory = decision_->devices[i];
    memory = state_->devices[i].memory;
    device.limit = device.usual_limit = state_->LimitOf(i);
    device.is_limit_free = device.limit == 1 && !state_->settings.max_concurrent && !share_.KeepsAny();
    if (device.is_limit_free) {
      device.counted = filling_.Advance(memory.filling);
    } else {
      memory.filling = {};
    }
  }
  overtaken_.assign(state_->tenants.size(), 0);
  groups_.assign(state_->groups.size(), GroupView{});
  decision_->memory.resize(state_->groups.size());
  for (GroupMemory& memory : decision_->memory)
    Clear(memory);
  for (const Tenant& tenant : state_->tenants) {
    const Group& group = state_->groups[tenant.group];
    int& bottom = devices_[tenant.device].bottom_priority;
    if (!group.hold) bottom = std::min(bottom, group.priority);
  }
  SumOwnerUse(rules);
  FindAside();
  for (std::uint32_t index = 0; index < groups_.size(); ++index) {
    const Group& group = state_->groups[index];
    if (group.hold) continue;
    GroupView& view = groups_[index];
    const auto tenants = roster_.TenantsOf(index);
    for (const std::uint32_t i : tenants) {
      const Tenant& tenant = state_->tenants[i];
      view.busy = view.busy || tenant.busy;
      // What an untracked one does is unknown: it had recent work.
      if (!IsRecent(tenant) && !view.is_aside) continue;
      DeviceView& device = devices_[tenant.device];
      AddLowest(device.lowest, {group.priority, tenant.client});
      if (tenant.busy || view.is_aside) AddLowest(device.lowest_busy, group.priority);
    }
    view.present = view.busy;
    Standing standing;
    if (rules.standing != nullptr) {
      Candidate candidate = CandidateOf(index);
      if (rules.use != nullptr && group.owner != kNoOwner) {
        candidate.others_use_ns = owner_use_[group.owner].ns - own_use_[index].ns;
        candidate.others_busy = owner_use_[group.owner].groups - own_use_[index].groups;
      }
      standing = rules.standing(candidate, decision_->memory[index]);
    }
    view.rank = {group.priority, standing.level};
    view.next_decision_ns = standing.next_decision_ns;
    Attach(index, {group.priority, standing.potential}, standing.ranked);
  }
}

Candidate Arbiter::CandidateOf(std::uint32_t group) const {
  const auto tenants = roster_.TenantsOf(group);
  const bool is_busy = std::any_of(tenants.begin(), tenants.end(), [&](auto i) { return state_->tenants[i].busy; });
  return {.state = *state_, .group = state_->groups[group], .tenants = tenants, .busy = is_busy, .now_ns = now_ns_};
}

// What an owner's groups use together. A group that is alone on its devices is untracked, so its use is unknown.
void Arbiter::SumOwnerUse(const Rules& rules) {
  if (rules.use == nullptr) return;
  constexpr std::uint32_t kSeveral = kNobody - 1;
  neighbour_.assign(state_->devices.size(), kNobody);
  for (const Tenant& tenant : state_->tenants) {
    if (state_->groups[tenant.group].hold) continue;
    std::uint32_t& first = neighbour_[tenant.device];
    if (first != tenant.group) first = first == kNobody ? tenant.group : kSeveral;
  }
  owner_use_.clear();
  own_use_.assign(groups_.size(), OwnerUse{});
  for (std::uint32_t index = 0; index < groups_.size(); ++index) {
    const Group& group = state_->groups[index];
    if (group.hold || group.owner == kNoOwner) continue;
    if (owner_use_.size() <= group.owner) owner_use_.resize(group.owner + 1);
    const Candidate candidate = CandidateOf(index);
    const bool has_neighbours = std::any_of(candidate.tenants.begin(), candidate.tenants.end(),
                                            [&](auto i) { return neighbour_[state_->tenants[i].device] == kSeveral; });
    if (!candidate.busy || !has_neighbours) continue;
    own_use_[index] = {rules.use(candidate), 1};
    owner_use_[group.owner].ns += own_use_[index].ns;
    ++owner_use_[group.owner].groups;
  }
}

void Arbiter::Attach(std::uint32_t group, Rank potential, bool ranked) {
  for (const std::uint32_t i : roster_.TenantsOf(group)) {
    DeviceView& device = devices_[state_->tenants[i].device];
    device.ranked = device.ranked || ranked;
    if (device.top_group == group) continue;
    if (device.top_group == kNobody || potential > device.top) {
      device.second = device.top;
      device.second_group = device.top_group;
      device.top = potential;
      device.top_group = group;
    } else if (device.second_group == kNobody || potential > device.second) {
      device.second = potential;
      device.second_group = group;
    }
  }
}

bool Arbiter::FindOvertaken(const Tenant& tenant) const {
  const DeviceView& device = devices_[tenant.device];
  const Rank& top = device.top_group == tenant.group ? device.second : device.top;
  return groups_[tenant.group].rank < top;
}

void Arbiter::FindTracked() {
  was_early_ = false;
  for (DeviceView& device : devices_) {
    const bool has_several = device.second_group != kNobody;
    device.is_mixed = has_several && (device.ranked || device.bottom_priority != device.top.priority);
  }
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    if (state_->groups[group].hold) {
      KeepBenefit(group);
      continue;
    }
    GroupView& view = groups_[group];
    view.tracked = share_.Keeps(group);
    for (const std::uint32_t i : roster_.TenantsOf(group)) {
      view.tracked = view.tracked || (devices_[state_->tenants[i].device].is_mixed && !view.is_aside);
      overtaken_[i] = FindOvertaken(state_->tenants[i]) ? 1 : 0;
    }
    if (view.tracked) {
      Remember(group);
    } else {
      Forget(group);
    }
  }
}

// What is known of a group's benefit stays while it is on hold or untracked. That time counts for nothing, and a pair
// ends: its blocks must be neighbours.
void Arbiter::KeepBenefit(std::uint32_t group) {
  const BenefitSlot& before = state_->groups[group].memory.benefit;
  if (!before.IsUsed()) return;
  BenefitMemory& next = decision_->memory[group].benefit.Use();
  next = *before;
  next.open = next.contended = next.others_work = next.several_work = false;
  next.place = 0;
  next.waits.stretch_since_ns = 0;
}

// An untracked group is open, and its work is unknown. Only its starvation and its benefit are kept, so that they do
// not start anew when a neighbour is briefly held or gone.
void Arbiter::Forget(std::uint32_t group) {
  const GroupMemory& before = state_->groups[group].memory;
  GroupMemory& next = decision_->memory[group];
  Clear(next);
  KeepBenefit(group);
  next.joins = before.joins;
  next.joins_gain = before.joins_gain;
  if (groups_[group].is_aside) next.aside = HashOfTenants(group);
  if (before.starved_since_ns == 0) return;
  next.open_since_ns = before.open_since_ns;
  next.starved_since_ns = before.starved_since_ns;
  next.had_ns = before.had_ns;
  next.guard_until_ns = before.guard_until_ns;
  if (next.open_since_ns == 0) next.open_since_ns = now_ns_;
}

std::uint64_t Arbiter::IdleSince(std::uint32_t group) const {
  std::uint64_t since_ns = 0;
  for (const std::uint32_t i : roster_.TenantsOf(group))
    since_ns = std::max(since_ns, state_->tenants[i].idle_since_ns);
  return since_ns;
}

std::uint64_t Arbiter::BusySince(std::uint32_t group) const {
  std::uint64_t since_ns = kNever;
  for (const std::uint32_t i : roster_.TenantsOf(group))
    if (state_->tenants[i].busy) since_ns = std::min(since_ns, state_->tenants[i].busy_since_ns);
  return since_ns;
}

Turns::Work Arbiter::TurnWorkOf(std::uint32_t group) const {
  const auto tenants = roster_.TenantsOf(group);
  return {.busy_since_ns = BusySince(group),
          .idle_since_ns = IdleSince(group),
          .is_in_flight = std::any_of(tenants.begin(), tenants.end(),
                                      [this](std::uint32_t i) { return state_->tenants[i].is_in_flight; }),
          .is_cut = std::any_of(tenants.begin(), tenants.end(), [this](std::uint32_t i) {
            return state_->devices[state_->tenants[i].device].default_max_concurrent != 0;
          })};
}

// Carries forward the memory that belongs to no policy.
void Arbiter::Remember(std::uint32_t group) {
  GroupView& view = groups_[group];
  const GroupMemory& before = state_->groups[group].memory;
  GroupMemory& next = decision_->memory[group];
  next.turn_since_ns = before.turn_since_ns;
  next.last_turn_ns = before.last_turn_ns == 0 ? now_ns_ : before.last_turn_ns;
  next.early_since_ns = before.early_since_ns;
  was_early_ = was_early_ || before.early_since_ns != 0;
  next.was_early = before.was_early;
  next.had_device_ns = before.had_device_ns;
  next.gains_beside = before.gains_beside;
  next.joins = before.joins;
  next.joins_gain = before.joins_gain;
  next.owed_ns = before.owed_ns;
  next.turn_ran_ns = before.turn_ran_ns;
  next.turn_held_ns = before.turn_held_ns;
  next.held_since_ns = before.held_since_ns;
  next.ending_since_ns = before.ending_since_ns;
  next.burst_since_ns = before.burst_since_ns;
  next.burst_ns = before.burst_ns;
  CountLaunches(group);
  if (next.turn_since_ns != 0) turns_.Expire(next, TurnWorkOf(group));
  next.tracked_since_ns = before.tracked_since_ns != 0 ? before.tracked_since_ns : now_ns_;
  // What an untracked one does is unknown until it has been tracked by one decision.
  if (view.busy || next.tracked_since_ns == now_ns_) {
    next.open_since_ns = before.open_since_ns;
    next.starved_since_ns = before.starved_since_ns;
    next.had_ns = before.had_ns;
    next.guard_until_ns = before.guard_until_ns;
  } else if (share_.Keeps(group)) {
    turns_.NoteReturned(next);
  } else if (next.turn_since_ns != 0 || next.early_since_ns != 0) {
    const auto tenants = roster_.TenantsOf(group);
    view.keeps_turn = std::any_of(tenants.begin(), tenants.end(),
                                  [this](std::uint32_t i) { return TurnKeptUntil(state_->tenants[i]) > now_ns_; });
    view.present = view.present || view.keeps_turn;
    if (!view.keeps_turn && next.turn_since_ns != 0) NoteLent(group);
  }
  DecideAgainAt(view.next_decision_ns);
}

// Of several on a device, the one that became idle last counts.
void Arbiter::NoteLent(std::uint32_t group) {
  const auto idle_since = [this](std::uint32_t of) { return std::tuple(IdleSince(of), state_->groups[of].id); };
  for (const std::uint32_t i : roster_.TenantsOf(group)) {
    std::uint32_t& lender = devices_[state_->tenants[i].device].lender;
    if (lender == kNobody || idle_since(lender) < idle_since(group)) lender = group;
  }
}

// Whether its benefit is observed: from when there first are others below it.
bool Arbiter::IsObserved(std::uint32_t group) const {
  if (!groups_[group].tracked) return false;
  return state_->groups[group].memory.benefit.IsUsed() || IsAboveOthers(group);
}

// What it and those below it do on its devices.
Benefit::Work Arbiter::WorkOf(std::uint32_t group) const {
  const int priority = groups_[group].rank.priority;
  const bool is_measured = IsMeasured(*state_->groups[group].memory.benefit);
  Benefit::Work work{.busy = groups_[group].busy};
  for (const std::uint32_t i : roster_.TenantsOf(group)) {
    const auto& [lowest, next] = devices_[state_->tenants[i].device].lowest_busy;
    work.others_work = work.others_work || lowest < priority;
    work.several_work = work.several_work || next < priority;
    work.contended = work.contended || (state_->tenants[i].busy && lowest < priority);
    work.others_aside = work.others_aside || devices_[state_->tenants[i].device].is_aside;
    if (is_measured) work.others_launched += LaunchedBelow(priority, state_->tenants[i].device);
  }
  return work;
}

std::uint64_t Arbiter::LaunchedBelow(int priority, std::uint32_t device) const {
  std::uint64_t launched = 0;
  for (const Tenant& tenant : state_->tenants)
    if (tenant.device == device && groups_[tenant.group].rank.priority < priority) launched += tenant.launched;
  return launched;
}

void Arbiter::NoteAnswer(std::uint32_t group) {
  const Mode mode = holders_.Measures(group) ? decision_->memory[group].benefit->settled : Mode::kHeld;
  const auto answer = static_cast<std::size_t>(mode);
  for (const std::uint32_t i : roster_.TenantsOf(group)) {
    int& highest = devices_[state_->tenants[i].device].answers[answer];
    highest = std::max(highest, groups_[group].rank.priority);
  }
}

// Counts the most on any one device.
Others Arbiter::OthersOf(std::uint32_t group) const {
  const int priority = groups_[group].rank.priority;
  Others others;
  for (const std::uint32_t i : roster_.TenantsOf(group)) {
    std::uint32_t here = 0;
    const DeviceView& device = devices_[state_->tenants[i].device];
    for (std::size_t mode = 0; mode < device.answers.size(); ++mode)
      if (device.answers[mode] > priority) others.who += HashOf(~std::uint64_t{mode});
    for (const auto& low : device.lowest) {
      if (low.priority >= priority) break;
      ++here;
      others.who += HashOf(low.client);
    }
    others.count = std::max(others.count, here);
  }
  return others;
}

void Arbiter::FindHolders() {
  if (holders_.Measures()) {
    for (std::uint32_t group = 0; group < groups_.size(); ++group)
      if (IsObserved(group)) holders_.Observe(group, WorkOf(group));
    for (const std::uint32_t group : holders_.Observed())
      NoteAnswer(group);
    for (const std::uint32_t group : holders_.Observed())
      holders_.NoteOthers(group, OthersOf(group));
    holders_.Choose();
  }
  for (const Tenant& tenant : state_->tenants) {
    if (state_->groups[tenant.group].hold) continue;
    // By the mode in force, which is known only now.
    groups_[tenant.group].present = groups_[tenant.group].present || Lingers(tenant);
    const Mode mode = holders_.ModeOf(tenant.group);
    if (HasSlices(devices_[tenant.device]) && IsRecent(tenant)) NoteActive(tenant, mode);
    if (HasOthersBelow(tenant)) NoteMode(tenant, mode);
  }
  for (std::uint32_t i = 0; i < state_->tenants.size(); ++i) {
    const Tenant& tenant = state_->tenants[i];
    DeviceView& device = devices_[tenant.device];
    if (state_->groups[tenant.group].hold || !HasSlices(device)) continue;
    device.can_be_held = device.can_be_held || CanBeHeld(i);
  }
  for (const DeviceView& device : devices_)
    if (HasSlices(device) && !HoldsThroughout(device.active_mode)) DecideAgainAt(device.active_until_ns);
}

void Arbiter::NoteMode(const Tenant& tenant, Mode mode) {
  DeviceView& device = devices_[tenant.device];
  const Rank& rank = groups_[tenant.group].rank;
  const auto note = [&rank](std::array<Rank, BenefitMemory::kModes>& by_mode, Mode of) {
    Rank& highest = by_mode[static_cast<std::size_t>(of)];
    highest = std::max(highest, rank);
  };
  note(device.by_mode, mode);
  if (IsAway(tenant)) return;
  const bool is_measured = holders_.Measures(tenant.group);
  const Rest rest = is_measured ? RestOf(*decision_->memory[tenant.group].benefit, mode) : Rest{};
  note(device.by_mode_not_away, rest.is_on ? std::max(mode, Benefit::kRestMode) : mode);
  DecideAgainAt(rest.ask_again_ns);
  if (is_measured && !tenant.busy && mode < kAwayMode) DecideAgainAt(tenant.idle_since_ns + kAwayNs);
}

void Arbiter::NoteActive(const Tenant& tenant, Mode mode) {
  DeviceView& device = devices_[tenant.device];
  const Rank& rank = groups_[tenant.group].rank;
  if (rank < device.active) return;
  const std::uint64_t until_ns = tenant.busy ? kNever : tenant.idle_since_ns + kRecentNs;
  const bool is_equal = rank == device.active;
  device.active_mode = is_equal ? std::min(mode, device.active_mode) : mode;
  device.active_until_ns = is_equal ? std::max(device.active_until_ns, until_ns) : until_ns;
  device.active = rank;
}

}  // namespace xschedd::policy
