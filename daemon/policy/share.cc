#include "daemon/policy/share.h"

#include <algorithm>
#include <cmath>

#include "daemon/policy/service.h"

namespace xschedd::policy {
namespace {

using Was = ShareMemory::State;

// 500 ms by default: more than kernels in flight and late measurements add to an honest lead.
constexpr double kMaxLead = 100;
// 50 ms by default: more than it takes to measure which clients used a saturated device.
constexpr std::uint64_t kPatience = 10;
// The least time between decisions: a running kernel cannot be stopped anyway.
constexpr std::uint64_t kShortestWaitNs = 500 * kNsPerUs;

}  // namespace

void Share::Begin(const State& state, const Roster& roster, Use use, std::uint64_t now_ns) {
  state_ = &state;
  roster_ = &roster;
  now_ns_ = now_ns;
  slack_ns_ = state.settings.share_slack_us * kNsPerUs;
  active_ = use != Use::kNobody && Survey(use);
  if (!active_) return;
  const auto count = static_cast<std::uint32_t>(state.groups.size());
  for (std::uint32_t group = 0; group < count; ++group)
    CollectUse(group);
  for (std::uint32_t group = 0; group < count; ++group)
    Charge(group);
  // Newcomers start from those who already compete, so they come last.
  for (std::uint32_t group = 0; group < count; ++group)
    Start(group);
}

// Finds each device's classes, and which are kept to shares. False: none.
bool Share::Survey(Use use) {
  const std::vector<Group>& all = state_->groups;
  // The common case: all weights are the default.
  if (use == Use::kUnequalWeights &&
      std::all_of(all.begin(), all.end(), [&](const Group& group) { return group.weight == all.front().weight; })) {
    return false;
  }
  classes_.clear();
  first_class_.assign(state_->devices.size(), kNone);
  class_of_.resize(state_->tenants.size());
  present_.resize(state_->tenants.size());
  groups_.assign(state_->groups.size(), Member{});
  bool any = false;
  for (std::uint32_t i = 0; i < state_->tenants.size(); ++i) {
    const Tenant& tenant = state_->tenants[i];
    const Group& group = state_->groups[tenant.group];
    // Groups on hold count as not attached, in a class of their own that is never kept.
    const int priority = group.hold ? std::numeric_limits<int>::min() : group.priority;
    std::uint32_t* link = &first_class_[tenant.device];
    while (*link != kNone && classes_[*link].priority != priority)
      link = &classes_[*link].next;
    if (*link == kNone) {
      class_of_[i] = *link = static_cast<std::uint32_t>(classes_.size());
      classes_.push_back(
          {.priority = priority, .first_group = tenant.group, .min_weight = group.weight, .max_weight = group.weight});
      continue;
    }
    class_of_[i] = *link;
    Class& entry = classes_[*link];
    entry.several = entry.several || entry.first_group != tenant.group;
    entry.several_owners = entry.several_owners || !HaveOneOwner(entry.first_group, tenant.group);
    entry.min_weight = std::min(entry.min_weight, group.weight);
    entry.max_weight = std::max(entry.max_weight, group.weight);
    entry.kept = !group.hold && entry.several && (use == Use::kAlways || entry.min_weight != entry.max_weight);
    any = any || entry.kept;
  }
  if (!any) return false;
  for (std::uint32_t i = 0; i < state_->tenants.size(); ++i) {
    const Tenant& tenant = state_->tenants[i];
    present_[i] = IsPresent(tenant) ? 1 : 0;
    if (!ClassOf(i).kept) continue;
    Member& member = groups_[tenant.group];
    member.kept = true;
    member.busy = member.busy || tenant.busy;
    member.present = member.present || present_[i] != 0;
  }
  Weigh();
  return true;
}

bool Share::IsPresent(const Tenant& tenant) const {
  return tenant.busy ||
         (tenant.idle_since_ns != 0 && tenant.idle_since_ns + state_->settings.linger_us * kNsPerUs > now_ns_);
}

bool Share::WasThere(const Tenant& tenant, const ShareMemory& memory) const {
  return tenant.busy ? tenant.busy_since_ns <= memory.seen_ns : tenant.idle_since_ns > memory.seen_ns;
}

// What each class used since the last decision, and whether a group of it waited.
void Share::CollectUse(std::uint32_t group) {
  const ShareMemory& memory = state_->groups[group].memory.share;
  if (!groups_[group].kept) return;
  for (const std::uint32_t index : roster_->TenantsOf(group)) {
    const Tenant& tenant = state_->tenants[index];
    Class& entry = ClassOf(index);
    entry.used_ns += tenant.ran_ns;
    if (!WasThere(tenant, memory)) continue;
    entry.waited = entry.waited || memory.state == Was::kHeld || memory.state == Was::kWaiting;
    if (memory.state != Was::kOpen || entry.weighed == group) continue;
    entry.weighed = group;
    entry.open_weight += WasParts(group);
  }
}

void Share::Charge(std::uint32_t group) {
  Member& member = groups_[group];
  const Group& view = state_->groups[group];
  const ShareMemory& memory = view.memory.share;
  if (!member.kept) return;
  const Candidate candidate{*state_, view, roster_->TenantsOf(group), member.present, now_ns_};
  const std::uint64_t service = Service(candidate);
  std::uint64_t charge = service;
  if (memory.state == Was::kOpen) {
    const std::uint64_t patience = kPatience * slack_ns_;
    const std::uint64_t wall = now_ns_ - memory.seen_ns;
    std::optional<std::uint64_t> most_missed;
    for (const std::uint32_t index : candidate.tenants) {
      const Class& entry = ClassOf(index);
      if (!entry.kept || !WasThere(state_->tenants[index], memory)) continue;
      std::uint64_t missed = memory.missed_ns + wall;
      missed -= std::min(missed, entry.used_ns);
      // While no group waits, late measurements may reduce what was missed, but it does not grow.
      if (!entry.waited) missed = std::min(missed, memory.missed_ns);
      most_missed = std::max(most_missed.value_or(0), std::min(missed, patience));
      if (missed <= patience) continue;
      const double part = static_cast<double>(WasParts(group)) / static_cast<double>(entry.open_weight);
      charge = std::max(charge, service + static_cast<std::uint64_t>(static_cast<double>(missed - patience) * part));
    }
    member.missed_ns = most_missed.value_or(memory.missed_ns);
  } else {
    // A turn may be shorter than the patience, and what was missed in it may yet be measured.
    member.missed_ns = memory.missed_ns - std::min(memory.missed_ns, service);
  }
  member.virtual_ns = memory.virtual_ns + static_cast<double>(charge) / InWeights(WasParts(group));

  const bool left_just_now = memory.left_ns != 0 && now_ns_ - memory.left_ns <= slack_ns_;
  member.known = memory.priority == view.priority && (memory.state != Was::kAway || left_just_now);
  if (!member.known) return;
  if (!member.present) {
    // It may come back to any of its classes.
    for (const std::uint32_t index : candidate.tenants) {
      Class& entry = ClassOf(index);
      entry.away = std::min(entry.away.value_or(member.virtual_ns), member.virtual_ns);
    }
    return;
  }
  const bool competes = memory.state != Was::kAway && memory.state != Was::kBlocked;
  Refer(group, competes ? &Class::competing : &Class::others);
}

void Share::Refer(std::uint32_t group, std::optional<double> Class::*least) {
  for (const std::uint32_t index : roster_->TenantsOf(group)) {
    Class& entry = ClassOf(index);
    if (!entry.kept || present_[index] == 0) continue;
    entry.*least = std::min((entry.*least).value_or(groups_[group].virtual_ns), groups_[group].virtual_ns);
  }
}

// Sets the virtual time of a group that did not compete at the last decision.
void Share::Start(std::uint32_t group) {
  Member& member = groups_[group];
  if (!member.kept || !member.present) return;
  const Group& view = state_->groups[group];
  // If it was charged at this very instant, no group has run since: deciding twice changes nothing.
  const bool compared = view.memory.share.state != Was::kBlocked || view.memory.share.seen_ns == now_ns_;
  if (member.known && compared) return;
  std::optional<double> level;
  for (const std::uint32_t index : roster_->TenantsOf(group)) {
    const Class& entry = ClassOf(index);
    if (!entry.kept || present_[index] == 0) continue;
    // A group that was blocked starts from those that competed; a newcomer, if there are none, from anybody.
    const std::optional<double> least = entry.competing || member.known ? entry.competing : entry.others;
    if (least) level = std::max(level.value_or(*least), *least);
  }
  if (member.known) {
    if (level) member.virtual_ns = std::max(member.virtual_ns, *level - static_cast<double>(slack_ns_) / Weight(group));
  } else {
    member.missed_ns = 0;
    member.virtual_ns = level.value_or(0);
  }
}

double Share::Lead(std::uint32_t group, std::uint32_t of) const {
  return (groups_[group].virtual_ns - groups_[of].virtual_ns) * Weight(group);
}

double Share::Order(std::uint32_t group, bool has_turn) const {
  return groups_[group].virtual_ns - (has_turn ? static_cast<double>(slack_ns_) / Weight(group) : 0);
}

bool Share::IsAhead(std::uint32_t group) {
  if (!Keeps(group)) return false;  // first, since groups_ is empty if no group is kept
  Member& member = groups_[group];
  const Group& view = state_->groups[group];
  // For an idle group: would it be ahead if it became busy now?
  if (!member.busy && !member.known) return false;
  const bool was_held = member.known && view.memory.share.ahead;
  const double allowed = was_held ? 0 : static_cast<double>(slack_ns_);
  const double most = kMaxLead * static_cast<double>(slack_ns_);
  double greatest = 0;
  std::uint32_t behind = kNone;
  for (const std::uint32_t index : roster_->TenantsOf(group)) {
    const Class& entry = ClassOf(index);
    if (!entry.kept || entry.last == kNone || entry.last == group) continue;
    if (member.busy && !state_->tenants[index].busy) continue;
    const double lead = Lead(group, entry.last);
    if (lead <= allowed || lead < greatest) continue;
    if (lead == greatest && entry.last_client >= member.held_for) continue;
    greatest = lead;
    behind = entry.last;
    member.held_for = entry.last_client;
  }
  member.ahead = behind != kNone;
  if (!member.ahead) return false;
  // An idle group's lead is cut once it is busy: until then others are compared with it, in any order.
  if (greatest > most && member.busy) {
    member.virtual_ns = groups_[behind].virtual_ns + most / Weight(group);
    greatest = most;
  }
  // It is level at the earliest after the other had the device to itself for this long.
  const double wait = greatest / Weight(group) * Weight(behind);
  member.recheck_ns = now_ns_ + std::max(kShortestWaitNs, static_cast<std::uint64_t>(std::llround(wait)) + 1);
  return true;
}

void Share::Admit(std::uint32_t group) {
  if (!Keeps(group)) return;
  Member& member = groups_[group];
  if (!member.present) return;
  member.admitted = true;
  for (const std::uint32_t index : roster_->TenantsOf(group)) {
    const Tenant& tenant = state_->tenants[index];
    Class& entry = ClassOf(index);
    if (!entry.kept || present_[index] == 0) continue;
    if (entry.last == group) {
      entry.last_client = std::min(entry.last_client, tenant.client);
    } else if (entry.last == kNone || IsBehind(group, entry.last)) {
      entry.second_last = entry.last;
      entry.last = group;
      entry.last_client = tenant.client;
    } else if (entry.second_last == kNone || IsBehind(group, entry.second_last)) {
      entry.second_last = group;
    }
  }
}

std::optional<std::uint64_t> Share::Room(std::uint32_t tenant) const {
  const Class& entry = ClassOf(tenant);
  const std::uint32_t group = state_->tenants[tenant].group;
  const std::uint32_t other = entry.last == group ? entry.second_last : entry.last;
  std::optional<double> behind = entry.away;
  if (other != kNone) behind = std::min(behind.value_or(groups_[other].virtual_ns), groups_[other].virtual_ns);
  if (!behind) return std::nullopt;
  const double lead = (groups_[group].virtual_ns - *behind) * Weight(group);
  const double slack = static_cast<double>(slack_ns_);
  // In steps, so that not every kernel changes the window.
  const std::uint64_t step = slack_ns_ / 8;
  return static_cast<std::uint64_t>(std::clamp(slack - lead, 0.0, slack)) / step * step;
}

bool Share::IsBehind(std::uint32_t group, std::uint32_t of) const {
  const double lead = groups_[group].virtual_ns - groups_[of].virtual_ns;
  return lead < 0 || (lead == 0 && state_->groups[group].id < state_->groups[of].id);
}

void Share::Finish(std::uint32_t group, Why blocked, ShareMemory& next, std::uint64_t& next_decision_ns) {
  Member& member = groups_[group];
  const Group& view = state_->groups[group];
  const ShareMemory& before = view.memory.share;
  if (!member.busy) IsAhead(group);
  next.virtual_ns = member.virtual_ns;
  next.weight = member.weight;
  next.seen_ns = now_ns_;
  next.priority = view.priority;
  next.ahead = member.ahead;
  next.missed_ns = member.missed_ns;
  if (!member.present) {
    next.state = Was::kAway;
    // One that has just got another priority comes anew.
    next.left_ns = !member.known ? 0 : before.state != Was::kAway ? now_ns_ : before.left_ns;
    // From then on it would start level: its gate opens, and the others need not expect it.
    if (member.known) next_decision_ns = std::min(next_decision_ns, next.left_ns + slack_ns_ + 1);
    return;
  }
  if (member.busy && member.ahead) {
    next.state = Was::kHeld;
    next_decision_ns = std::min(next_decision_ns, member.recheck_ns);
    return;
  }
  if (!member.admitted) {
    next.state = blocked == Why::kTurn ? Was::kWaiting : Was::kBlocked;
    next.ahead = member.known && before.ahead;
    return;
  }
  next.state = Was::kOpen;
  for (const std::uint32_t index : roster_->TenantsOf(group)) {
    const Class& entry = ClassOf(index);
    const std::uint32_t other = entry.last == group ? entry.second_last : entry.last;
    if (!entry.kept || other == kNone || !state_->tenants[index].busy) continue;
    // It is ahead by more than the slack at the earliest after running alone for this long.
    const double left = static_cast<double>(slack_ns_) - Lead(group, other);
    const auto wait = left <= 0 ? 0 : static_cast<std::uint64_t>(left) + 1;
    next_decision_ns = std::min(next_decision_ns, now_ns_ + std::max(kShortestWaitNs, wait));
  }
}

}  // namespace xschedd::policy
