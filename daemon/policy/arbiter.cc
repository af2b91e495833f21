#include "daemon/policy/arbiter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include "daemon/policy/slices.h"

namespace xschedd::policy {
namespace {

// Long kernels on several streams of the most important client must be able to run side by side: a HIP process has four
// hardware queues (GPU_MAX_HW_QUEUES).
constexpr std::uint32_t kTopFloor = 4;
// A second launch in flight keeps the pipeline of one tenant full between two long kernels; several keep the device
// full together.
constexpr std::uint32_t kPipelineFloor = 2;
// With the default's 500 µs so many keep an H200 busy for one of its time slices between processes, 2 ms, and who has
// them does not notice that he is tracked.
constexpr std::uint32_t kWideWindows = WindowsBelow(BenefitMemory::Mode::kBeside);
// Above any time that a clock gives.
constexpr std::uint64_t kWaits = std::uint64_t{1} << 63;

// Keeps the lowest, ascending.
template <typename Value, std::size_t kCount>
void AddLowest(std::array<Value, kCount>& lowest, Value value) {
  for (Value& each : lowest)
    if (value < each) std::swap(value, each);
}

// Sums of these tell sets apart; not a sum of the numbers themselves.
std::uint64_t HashOf(std::uint64_t client) {
  const std::uint64_t mixed = client * 0x9e3779b97f4a7c15ull;
  return (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93ull;
}

}  // namespace

void Arbiter::Decide(const State& state, const Rules& rules, std::uint64_t now_ns, Decision& decision) {
  state_ = &state;
  decision_ = &decision;
  now_ns_ = now_ns;
  why_ = rules.why;
  turns_ = Turns(state.settings.turn_ms, now_ns);
  decision.next_look_ns = kNever;

  roster_.Build(state);
  share_.Begin(state, roster_, rules.share, now_ns);
  Survey(rules);
  FindTracked();
  // Levels and shares are about fairness, not about who is important.
  holders_.Begin(state, roster_, rules.standing == nullptr && !share_.KeepsAny(), now_ns, decision);
  FindHolders();
  Order();
  guard_.Begin(state, roster_, now_ns, decision);
  for (const Place& place : order_)
    Admit(place.group);
  for (const Place& place : order_) {
    WatchTurns(place.group);
    if (!groups_[place.group].busy) continue;
    groups_[place.group].blocked == Why::kOpen ? guard_.NoteOpen(place.group) : guard_.NoteHeld(place.group);
  }
  guard_.GiveSlots();
  FinishShares();
  NoteBenefits();
  CountWindows();
  decision.gates.resize(state.tenants.size());
  for (std::uint32_t i = 0; i < state.tenants.size(); ++i) {
    decision.gates[i] = GateOf(i);
    decision.gates[i].slice_us = SliceFor(i, decision.gates[i]);
  }
  FindAwaited();
}

// Of several who go before, one is named (ClaimDevice): the next one is when that one is idle.
void Arbiter::FindAwaited() {
  awaited_.clear();
  for (std::uint32_t i = 0; i < decision_->gates.size(); ++i) {
    const Gate& gate = decision_->gates[i];
    if (!gate.held || gate.held_for == 0 || !state_->tenants[i].busy) continue;
    if (std::find(awaited_.begin(), awaited_.end(), gate.held_for) == awaited_.end()) awaited_.push_back(gate.held_for);
  }
  if (awaited_.empty()) return;
  for (std::uint32_t i = 0; i < decision_->gates.size(); ++i) {
    Gate& gate = decision_->gates[i];
    gate.awaited = gate.tracked && !gate.held &&
                   std::find(awaited_.begin(), awaited_.end(), state_->tenants[i].client) != awaited_.end();
  }
}

// Who is attached where, and how each group stands.
void Arbiter::Survey(const Rules& rules) {
  devices_.assign(state_->devices.size(), DeviceView{});
  for (std::size_t i = 0; i < devices_.size(); ++i)
    devices_[i].limit = ConcurrentLimit(state_->settings, state_->devices[i]);
  overtaken_.assign(state_->tenants.size(), 0);
  groups_.assign(state_->groups.size(), GroupView{});
  decision_->memory.assign(state_->groups.size(), GroupMemory{});
  for (std::uint32_t index = 0; index < groups_.size(); ++index) {
    const Group& group = state_->groups[index];
    if (group.hold) continue;
    GroupView& view = groups_[index];
    const auto tenants = roster_.TenantsOf(index);
    for (const std::uint32_t i : tenants) {
      const Tenant& tenant = state_->tenants[i];
      view.busy = view.busy || tenant.busy;
      view.present = view.present || tenant.busy || Lingers(tenant);
      if (!IsRecent(tenant)) continue;
      DeviceView& device = devices_[tenant.device];
      AddLowest(device.lowest, {group.priority, tenant.client});
      if (tenant.busy) device.lowest_busy = std::min(device.lowest_busy, group.priority);
    }
    Standing standing;
    if (rules.standing != nullptr) {
      standing = rules.standing({*state_, group, tenants, view.busy, now_ns_}, decision_->memory[index]);
    }
    view.rank = {group.priority, standing.level};
    view.next_look_ns = standing.next_look_ns;
    Attach(index, {group.priority, standing.potential}, standing.ranked);
  }
}

void Arbiter::Attach(std::uint32_t group, Rank potential, bool ranked) {
  for (const std::uint32_t i : roster_.TenantsOf(group)) {
    DeviceView& device = devices_[state_->tenants[i].device];
    device.bottom_priority = std::min(device.bottom_priority, potential.priority);
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

bool Arbiter::IsMixed(const DeviceView& device) const {
  if (device.second_group == kNobody) return false;
  return device.ranked || device.bottom_priority != device.top.priority;
}

void Arbiter::FindTracked() {
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    if (state_->groups[group].hold) continue;
    GroupView& view = groups_[group];
    view.tracked = share_.Keeps(group);
    for (const std::uint32_t i : roster_.TenantsOf(group)) {
      view.tracked = view.tracked || IsMixed(devices_[state_->tenants[i].device]);
      overtaken_[i] = FindOvertaken(state_->tenants[i]) ? 1 : 0;
    }
    if (view.tracked) {
      Remember(group);
    } else {
      Forget(group);
    }
  }
}

// Whoever is untracked is open, and nothing is known of its work. Only a case for the guard, and what is known of
// holding others for it, stay, so that a neighbour that is held or gone for a moment does not begin them anew.
void Arbiter::Forget(std::uint32_t group) {
  const GroupMemory& before = state_->groups[group].memory;
  GroupMemory& next = decision_->memory[group];
  next = GroupMemory{.benefit = before.benefit};
  next.benefit.open = false;
  if (before.starved_since_ns == 0) return;
  next.open_since_ns = before.open_since_ns;
  next.starved_since_ns = before.starved_since_ns;
  next.had_ns = before.had_ns;
  next.guard_until_ns = before.guard_until_ns;
  if (next.open_since_ns == 0) next.open_since_ns = now_ns_;
}

// Carries forward what belongs to no policy.
void Arbiter::Remember(std::uint32_t group) {
  GroupView& view = groups_[group];
  const GroupMemory& before = state_->groups[group].memory;
  GroupMemory& next = decision_->memory[group];
  next.turn_since_ns = before.turn_since_ns;
  next.last_turn_ns = before.last_turn_ns == 0 ? now_ns_ : before.last_turn_ns;
  turns_.Expire(next);
  if (view.busy) {
    next.open_since_ns = before.open_since_ns;
    next.starved_since_ns = before.starved_since_ns;
    next.had_ns = before.had_ns;
    next.guard_until_ns = before.guard_until_ns;
  } else if (share_.Keeps(group)) {
    turns_.NoteIdle(next);
  } else if (next.turn_since_ns != 0) {
    const auto tenants = roster_.TenantsOf(group);
    view.keeps_turn = std::any_of(tenants.begin(), tenants.end(),
                                  [this](std::uint32_t i) { return TurnKeptUntil(state_->tenants[i]) > now_ns_; });
    view.present = view.present || view.keeps_turn;
    if (!view.keeps_turn) turns_.NoteIdle(next);
  }
  LookAt(view.next_look_ns);
}

// Whether there is anybody whom it could hold.
bool Arbiter::IsContended(std::uint32_t group) const {
  const auto tenants = roster_.TenantsOf(group);
  return std::any_of(tenants.begin(), tenants.end(), [&](std::uint32_t i) {
    const Tenant& tenant = state_->tenants[i];
    return tenant.busy && devices_[tenant.device].lowest_busy < groups_[group].rank.priority;
  });
}

// As many as there are on one device.
Others Arbiter::OthersBelow(std::uint32_t group) const {
  Others others;
  for (const std::uint32_t i : roster_.TenantsOf(group)) {
    std::uint32_t here = 0;
    for (const auto& low : devices_[state_->tenants[i].device].lowest) {
      if (low.priority >= groups_[group].rank.priority) break;
      ++here;
      others.who += HashOf(low.client);
    }
    others.count = std::max(others.count, here);
  }
  return others;
}

void Arbiter::NoteBenefits() {
  if (!holders_.Measures()) return;
  for (const Place& place : order_) {
    const GroupView& view = groups_[place.group];
    holders_.Note(place.group, view.busy && view.blocked == Why::kOpen);
  }
}

void Arbiter::FindHolders() {
  if (holders_.Measures()) {
    for (std::uint32_t group = 0; group < groups_.size(); ++group)
      if (groups_[group].tracked) holders_.Look(group, groups_[group].busy, IsContended(group), OthersBelow(group));
    holders_.Choose();
  }
  for (const Tenant& tenant : state_->tenants) {
    if (state_->groups[tenant.group].hold) continue;
    DeviceView& device = devices_[tenant.device];
    const Rank& rank = groups_[tenant.group].rank;
    const BenefitMemory::Mode mode = holders_.ModeOf(tenant.group);
    if (IsRecent(tenant)) NoteActive(tenant, mode == BenefitMemory::Mode::kHeld);
    if (mode == BenefitMemory::Mode::kHeld) device.holder = std::max(device.holder, rank);
    if (IsWhileItWaits(mode)) device.waiter = std::max(device.waiter, rank);
    if (WindowsBelow(mode) == 1) device.one_window = std::max(device.one_window, rank);
    if (WindowsBelow(mode) == 2) device.two_windows = std::max(device.two_windows, rank);
  }
  for (std::uint32_t i = 0; i < state_->tenants.size(); ++i) {
    const Tenant& tenant = state_->tenants[i];
    if (state_->groups[tenant.group].hold) continue;
    if (CanBeHeld(i)) devices_[tenant.device].can_be_held = true;
    if (RunsBeside(tenant) && IsRecent(tenant)) CountBeside(tenant);
  }
  for (const DeviceView& device : devices_)
    if (HasSlices(device) && !device.active_holds) LookAt(device.active_until_ns);
}

void Arbiter::NoteActive(const Tenant& tenant, bool holds) {
  DeviceView& device = devices_[tenant.device];
  const Rank& rank = groups_[tenant.group].rank;
  if (rank < device.active) return;
  const std::uint64_t until_ns = tenant.busy ? kNever : tenant.idle_since_ns + kRecentNs;
  const bool is_equal = rank == device.active;
  device.active_holds = holds || (is_equal && device.active_holds);
  device.active_until_ns = is_equal ? std::max(device.active_until_ns, until_ns) : until_ns;
  device.active = rank;
}

void Arbiter::CountBeside(const Tenant& tenant) {
  DeviceView& device = devices_[tenant.device];
  if (device.first_beside == kNobody) device.first_beside = tenant.group;
  device.several_beside = device.several_beside || device.first_beside != tenant.group;
  if (!tenant.busy && HasSlices(device)) LookAt(tenant.idle_since_ns + kRecentNs);
}

// Highest rank first. Groups that are idle claim nothing and need no place.
void Arbiter::Order() {
  order_.clear();
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    const GroupView& view = groups_[group];
    if (!view.tracked || !view.present) continue;
    const GroupMemory& memory = decision_->memory[group];
    const bool has_turn = memory.turn_since_ns != 0;
    order_.push_back(
        {.rank = view.rank,
         .share = share_.Keeps(group) ? share_.Order(group, has_turn) : std::numeric_limits<double>::infinity(),
         .turn = (has_turn ? 0 : kWaits) + memory.last_turn_ns,
         .group = group});
  }
  std::sort(order_.begin(), order_.end(), [this](const Place& a, const Place& b) {
    if (a.rank != b.rank) return a.rank > b.rank;
    if (a.share != b.share) return a.share < b.share;
    if (a.turn != b.turn) return a.turn < b.turn;
    return state_->groups[a.group].id < state_->groups[b.group].id;
  });
  if (share_.KeepsAny()) Interleave();
}

// Inside a rank, who is kept to a share on one of its devices and who is not may share a device where turns are taken:
// of the first of each, whoever has waited longer for its turn goes first. Each kind keeps its order.
void Arbiter::Interleave() {
  interleaved_.clear();
  for (auto from = order_.begin(); from != order_.end();) {
    const auto to = std::find_if(from, order_.end(), [&](const Place& place) { return place.rank != from->rank; });
    const auto others = std::find_if(from, to, [](const Place& place) { return std::isinf(place.share); });
    std::uint64_t latest = 0;
    for (auto place = from; place != others; ++place)
      place->turn = latest = std::max(latest, place->turn);
    std::merge(from, others, others, to, std::back_inserter(interleaved_),
               [](const Place& a, const Place& b) { return a.turn < b.turn; });
    from = to;
  }
  order_.swap(interleaved_);
}

bool Arbiter::FindOvertaken(const Tenant& tenant) const {
  const DeviceView& device = devices_[tenant.device];
  const Rank& top = device.top_group == tenant.group ? device.second : device.top;
  return groups_[tenant.group].rank < top;
}

bool Arbiter::IsInTurnOn(std::uint32_t group, std::uint32_t device) const {
  const auto tenants = roster_.TenantsOf(group);
  return std::any_of(tenants.begin(), tenants.end(), [&](std::uint32_t i) {
    const Tenant& tenant = state_->tenants[i];
    return tenant.device == device && (tenant.busy || KeepsTurn(tenant));
  });
}

void Arbiter::Admit(std::uint32_t group) {
  GroupView& view = groups_[group];
  WaitForClaims(group);
  if (view.blocked == Why::kOpen && share_.Keeps(group) && share_.MustWait(group)) {
    view.blocked = Why::kShare;
    view.blocked_for = share_.HeldFor(group);
  }
  if (view.blocked == Why::kOpen) WaitForTurn(group);
  if (view.blocked == Why::kOpen) return Claim(group);
  // Who gives way inside its class gives its turn back; for a higher rank it would keep it.
  const bool gives_way = view.blocked == Why::kShare || view.blocked == Why::kTurn;
  if (gives_way && share_.Keeps(group)) turns_.NoteIdle(decision_->memory[group]);
}

void Arbiter::WaitForClaims(std::uint32_t group) {
  GroupView& view = groups_[group];
  Rank strongest;
  for (const std::uint32_t i : roster_.TenantsOf(group)) {
    const Tenant& tenant = state_->tenants[i];
    const DeviceView& device = devices_[tenant.device];
    if (!tenant.busy || device.claim <= view.rank) continue;
    // Of several claims, the answer to "for whom?" must not depend on the order of tenants.
    const bool says_more =
        device.claim > strongest || (device.claim == strongest && device.claimant < view.blocked_for);
    if (!says_more) continue;
    strongest = device.claim;
    view.blocked = WhyClaimed(device, view.rank);
    view.blocked_for = device.claimant;
  }
}

void Arbiter::WaitForTurn(std::uint32_t group) {
  GroupView& view = groups_[group];
  for (const std::uint32_t i : roster_.TenantsOf(group)) {
    const Tenant& tenant = state_->tenants[i];
    DeviceView& device = devices_[tenant.device];
    if (!tenant.busy || !TakesTurns(i) || !IsFull(device)) continue;
    device.awaited = true;
    if (view.blocked == Why::kOpen || device.turn_client < view.blocked_for) view.blocked_for = device.turn_client;
    view.blocked = Why::kTurn;
  }
  if (view.blocked == Why::kTurn) SpeakFor(group);
}

// Turns on several devices end at different times. Those who would begin one here before the group has all its devices
// run until then without a turn, so that they do not go before it when the last of the others' ends.
void Arbiter::SpeakFor(std::uint32_t group) {
  const Rank& rank = groups_[group].rank;
  for (const std::uint32_t i : roster_.TenantsOf(group)) {
    DeviceView& device = devices_[state_->tenants[i].device];
    if (!state_->tenants[i].busy || !TakesTurns(i) || device.next_group == group) continue;
    device.next_group = group;
    device.next_in_turn = device.next_rank == rank ? device.next_in_turn + 1 : 1;
    device.next_rank = rank;
  }
}

void Arbiter::Claim(std::uint32_t group) {
  const GroupView& view = groups_[group];
  bool takes_turn = false;
  bool fills_in = false;
  for (const std::uint32_t i : roster_.TenantsOf(group)) {
    const Tenant& tenant = state_->tenants[i];
    const bool lingers = Lingers(tenant);
    const bool keeps_turn = KeepsTurn(tenant);
    if (!tenant.busy && !lingers && !keeps_turn) continue;
    DeviceView& device = devices_[tenant.device];
    if (keeps_turn) LookAt(TurnKeptUntil(tenant));
    if (lingers && device.second_group != kNobody) LookAt(LingerEnd(tenant));
    if (tenant.busy || lingers) ClaimDevice(i, lingers);
    if (!(tenant.busy || keeps_turn) || !TakesTurns(i)) continue;
    takes_turn = true;
    if (device.turn_client == 0 || tenant.client < device.turn_client) device.turn_client = tenant.client;
    if (device.counted_group == group) continue;
    fills_in = fills_in || IsSpokenFor(device, view.rank);
    ++device.groups_in_turn;
    device.counted_group = group;
  }
  if (takes_turn && !fills_in) turns_.NoteOpen(decision_->memory[group]);
  if (share_.Keeps(group)) share_.Admit(group);
}

// Holds those below on the device, or is beside them.
void Arbiter::ClaimDevice(std::uint32_t index, bool lingers) {
  const Tenant& tenant = state_->tenants[index];
  const GroupView& view = groups_[tenant.group];
  DeviceView& device = devices_[tenant.device];
  if (!holders_.HoldsNow(tenant.group)) {
    const auto named = std::tuple(view.rank.priority, tenant.client);
    if (tenant.busy && named > std::tuple(device.beside, device.beside_client))
      std::tie(device.beside, device.beside_client) = named;
    return;
  }
  // Of several of one rank, who is named must not depend on the order of anything: one with work, then the oldest.
  const bool first = device.claimant == 0;
  const bool names_better = device.claim == view.rank &&
                            std::tuple(lingers, tenant.client) < std::tuple(device.claim_lingers, device.claimant);
  if (!first && !names_better) return;
  device.claim = view.rank;
  device.claimant = tenant.client;
  device.claim_lingers = lingers;
}

void Arbiter::FinishShares() {
  if (!share_.KeepsAny()) return;
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    if (!share_.Keeps(group)) continue;
    share_.Finish(group, groups_[group].blocked, decision_->memory[group].share, decision_->next_look_ns);
  }
}

// The turns that somebody waits for must be looked at when they end.
void Arbiter::WatchTurns(std::uint32_t group) {
  if (groups_[group].blocked != Why::kOpen) return;
  for (const std::uint32_t i : roster_.TenantsOf(group)) {
    if (devices_[state_->tenants[i].device].awaited) {
      turns_.NoteAwaited(decision_->memory[group], decision_->next_look_ns);
    }
  }
}

void Arbiter::CountWindows() {
  for (std::uint32_t i = 0; i < state_->tenants.size(); ++i) {
    const Tenant& tenant = state_->tenants[i];
    const GroupView& view = groups_[tenant.group];
    const bool open = view.blocked == Why::kOpen || guard_.HasSlot(tenant.group);
    if (!tenant.busy || !open || state_->groups[tenant.group].hold) continue;
    DeviceView& device = devices_[tenant.device];
    ++(CanBeOvertaken(i) ? device.background_clients : device.top_clients);
  }
}

Why Arbiter::WhyClaimed(const DeviceView& device, const Rank& rank) const {
  if (device.claim_lingers) return Why::kLinger;
  return device.claim.priority == rank.priority ? why_ : Why::kPriority;
}

Gate Arbiter::GateOf(std::uint32_t index) const {
  const auto held = [](Why why, std::uint64_t held_for) {
    return Gate{.held = true, .tracked = true, .why = why, .held_for = held_for};
  };
  const Tenant& tenant = state_->tenants[index];
  const GroupView& view = groups_[tenant.group];
  const DeviceView& device = devices_[tenant.device];
  if (state_->groups[tenant.group].hold) return held(Why::kHold, 0);
  if (!view.tracked) return Gate{};
  const bool guarded = guard_.HasSlot(tenant.group);
  if (!guarded) {
    if (device.claim > view.rank) return held(WhyClaimed(device, view.rank), device.claimant);
    if (view.blocked == Why::kTurn || view.blocked == Why::kShare) return held(view.blocked, view.blocked_for);
    if (view.blocked != Why::kOpen) return held(Why::kGang, view.blocked_for);
    if (share_.KeepsTenant(index) && share_.WouldWait(tenant.group)) {
      return held(Why::kShare, share_.HeldFor(tenant.group));
    }
    if (IsFull(device) && TakesTurns(index) && !IsInTurnOn(tenant.group, tenant.device)) {
      return held(Why::kTurn, device.turn_client);
    }
  }
  Gate gate{.tracked = true, .why = guarded ? Why::kGuard : Why::kOpen};
  if (!guarded && device.beside > view.rank.priority) {
    gate.why = Why::kBeside;
    gate.held_for = device.beside_client;
  }
  gate.window_us = WindowOf(index, gate.window_floor);
  gate.tells_waits = view.rank.priority > device.bottom_priority && holders_.WantsWaits(tenant.group);
  return gate;
}

std::uint32_t Arbiter::SliceFor(std::uint32_t index, const Gate& gate) const {
  const Tenant& tenant = state_->tenants[index];
  const DeviceView& device = devices_[tenant.device];
  return SliceOf({.enabled = HasSlices(device),
                  .tracked = gate.tracked && !state_->groups[tenant.group].hold,
                  .guarded = gate.why == Why::kGuard,
                  .runs_beside = RunsBeside(tenant),
                  .several_beside = device.several_beside,
                  .can_be_held = CanBeHeld(index),
                  .takes_turns = TakesTurns(index),
                  .somebody_can_be = device.can_be_held});
}

// In µs; 0: no limit.
std::uint32_t Arbiter::WindowOf(std::uint32_t index, std::uint32_t& floor) const {
  const Tenant& tenant = state_->tenants[index];
  const DeviceView& device = devices_[tenant.device];
  const Settings& settings = state_->settings;
  if (CanBeOvertaken(index)) {
    if (settings.window_us == 0) return 0;
    const Rank& rank = groups_[tenant.group].rank;
    const bool is_held = CanBeHeld(index);
    const std::uint32_t clients = is_held || rank < device.waiter ? std::max(1u, device.background_clients) : 1;
    const std::uint32_t windows = !holders_.Measures() || rank < device.one_window ? 1
                                  : rank < device.two_windows                      ? 2
                                                                                   : kWideWindows;
    floor = clients == 1 ? kPipelineFloor : 1;
    return std::max(1u, windows * settings.window_us / clients);
  }
  const bool shares = share_.KeepsTenant(index);
  const std::uint32_t budget = shares ? settings.share_slack_us : settings.top_window_us;
  if (budget == 0) return 0;
  const std::uint32_t clients = std::max(1u, device.top_clients);
  const std::uint32_t part = std::max(1u, budget / clients);
  const auto room_ns = shares ? share_.Room(index) : std::nullopt;
  floor = room_ns ? kPipelineFloor : kTopFloor;
  if (!room_ns) return part;
  // Never less than it would have in the background.
  const std::uint32_t least = settings.window_us == 0 ? part : std::max(1u, settings.window_us / clients);
  return std::min(part, std::max(static_cast<std::uint32_t>(*room_ns / kNsPerUs), least));
}

}  // namespace xschedd::policy
