// Admission: the order of groups, what each waits for, and what an admitted one claims. Thread rule: arbiter.h.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include "daemon/policy/arbiter.h"

namespace xschedd::policy {
namespace {

// Above any clock time.
constexpr std::uint64_t kWaits = std::uint64_t{1} << 63;

}  // namespace

// Highest rank first. Groups that are not present claim nothing.
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
         .turn = view.is_early ? 0
                 : has_turn    ? memory.turn_since_ns
                               : kWaits + memory.last_turn_ns,
         .group = group});
  }
  // Without turns and shares nothing depends on the order of equals.
  const bool has_limit =
      std::any_of(devices_.begin(), devices_.end(), [](const auto& view) { return view.limit != 0; });
  const bool orders_equals = has_limit || share_.KeepsAny();
  const auto goes_before = [&](const Place& a, const Place& b) {
    if (a.rank != b.rank) return a.rank > b.rank;
    if (!orders_equals) return false;
    if (a.share != b.share) return a.share < b.share;
    if (a.turn != b.turn) return a.turn < b.turn;
    return state_->groups[a.group].id < state_->groups[b.group].id;
  };
  if (!std::is_sorted(order_.begin(), order_.end(), goes_before)) std::sort(order_.begin(), order_.end(), goes_before);
  if (share_.KeepsAny()) Interleave();
}

// Sharers and others of one rank may take turns on one device. Merges the two, each in its own order: of the first of
// each, the one that has waited longer for its turn goes first.
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

void Arbiter::Admit(std::uint32_t group) {
  GroupView& view = groups_[group];
  WaitForClaims(group);
  if (view.blocked == Why::kOpen && share_.Keeps(group) && share_.MustWait(group)) {
    view.blocked = Why::kShare;
    view.blocked_for = share_.HeldFor(group);
  }
  if (view.blocked == Why::kOpen) WaitForTurn(group);
  if (view.blocked == Why::kOpen) return Claim(group);
  // One that is held for a higher rank keeps its turn, and so does one that is interrupted.
  if ((view.blocked != Why::kShare && view.blocked != Why::kTurn) || IsInterrupted(group)) return;
  GroupMemory& memory = decision_->memory[group];
  share_.Keeps(group) ? turns_.NoteReturned(memory) : turns_.NoteReclaimed(memory);
}

void Arbiter::WaitForClaims(std::uint32_t group) {
  GroupView& view = groups_[group];
  Rank strongest;
  for (const std::uint32_t i : roster_.TenantsOf(group)) {
    const Tenant& tenant = state_->tenants[i];
    const DeviceView& device = devices_[tenant.device];
    if (!tenant.busy || device.claim <= view.rank) continue;
    // The claimant named must not depend on the order of tenants.
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
    if (!tenant.busy || !IsFull(device) || !TakesTurns(i)) continue;
    if (device.awaited_by == kNobody) device.awaited_by = group;
    if (view.blocked == Why::kOpen || device.turn_client < view.blocked_for) view.blocked_for = device.turn_client;
    view.blocked = Why::kTurn;
  }
  if (view.blocked == Why::kOpen) WaitToBorrow(group);
  if (view.blocked == Why::kTurn) Reserve(group);
  if (view.blocked == Why::kOpen) Pass(group);
}

// The lender may be back at any moment, and then waits for what this group has in flight. So that may take no longer
// than the pause has lasted.
void Arbiter::WaitToBorrow(std::uint32_t group) {
  if (decision_->memory[group].turn_since_ns != 0 || !EndsLaunches(group)) return;
  const std::uint32_t only = OnlyDeviceOf(group);
  const DeviceView& device = devices_[only];
  const bool is_lent = device.lender != kNobody && groups_[device.lender].rank == groups_[group].rank;
  if (!is_lent || !TakesTurns(roster_.TenantsOf(group).front())) return;
  const std::uint64_t from_ns = IdleSince(device.lender) + turns_.EndingNs(decision_->memory[group]);
  if (from_ns <= now_ns_) return;
  DecideAgainAt(from_ns);
  GroupView& view = groups_[group];
  view.blocked = Why::kTurn;
  view.blocked_for = FirstClientOf(device.lender, only);
}

// To the next one that waits for this device, if that waits for nothing else; if none waits, one that pauses may be
// back. What all that wait owe, each of them would pass in turn: they owe it no more.
void Arbiter::Pass(std::uint32_t group) {
  GroupMemory& memory = decision_->memory[group];
  if (memory.turn_since_ns != 0 || groups_[group].is_early || memory.owed_ns <= 0 || !EndsLaunches(group)) return;
  const std::uint32_t only = OnlyDeviceOf(group);
  DeviceView& device = devices_[only];
  if (device.lender != kNobody || TurnsOwed(group, only) == 0) return;
  const auto waits_here = [&](const Place& place) {
    const auto tenants = roster_.TenantsOf(place.group);
    return place.rank == groups_[group].rank && std::any_of(tenants.begin(), tenants.end(), [&](std::uint32_t i) {
             return state_->tenants[i].busy && state_->tenants[i].device == only && TakesTurns(i);
           });
  };
  const auto own = std::find_if(order_.begin(), order_.end(), [&](const Place& place) { return place.group == group; });
  const auto next = std::find_if(own + 1, order_.end(), waits_here);
  if (next == order_.end() && device.awaited_by == kNobody) AwaitReturn(group);
  if (next == order_.end() || !EndsLaunches(next->group)) return;
  std::uint32_t owed_by_all = TurnsOwed(group, only);
  for (auto place = next; place != order_.end(); place = std::find_if(place + 1, order_.end(), waits_here))
    owed_by_all = std::min(owed_by_all, TurnsOwed(place->group, only));
  for (auto place = own; place != order_.end(); place = std::find_if(place + 1, order_.end(), waits_here))
    turns_.Forgive(decision_->memory[place->group], owed_by_all);
  if (TurnsOwed(group, only) == 0) return;
  turns_.NotePassed(memory, device.takes_turns.count, TurnWorkOf(group));
  device.awaited_by = device.awaited_by == kNobody ? group : device.awaited_by;
  groups_[group].blocked = Why::kTurn;
}

// Of a group that takes turns on that device.
std::uint32_t Arbiter::TurnsOwed(std::uint32_t group, std::uint32_t device) const {
  return turns_.TurnsOwed(decision_->memory[group], devices_[device].takes_turns.count, TurnWorkOf(group));
}

// Of one that owes fewer turns.
void Arbiter::AwaitReturn(std::uint32_t group) {
  const std::uint32_t only = OnlyDeviceOf(group);
  const std::uint64_t pause_ns = turns_.EndingNs(decision_->memory[group]);
  GroupView& view = groups_[group];
  const std::uint32_t owed = TurnsOwed(group, only);
  for (std::uint32_t other = 0; other < groups_.size(); ++other) {
    const GroupView& its = groups_[other];
    if (other == group || !its.tracked || its.busy || its.rank != view.rank || OnlyDeviceOf(other) != only) continue;
    const std::uint64_t idle_since_ns = IdleSince(other);
    if (idle_since_ns == 0 || idle_since_ns + pause_ns <= now_ns_ || !EndsLaunches(other) ||
        TurnsOwed(other, only) >= owed)
      continue;
    DecideAgainAt(idle_since_ns + pause_ns);
    const std::uint64_t client = FirstClientOf(other, only);
    view.blocked_for = view.blocked == Why::kTurn ? std::min(view.blocked_for, client) : client;
    view.blocked = Why::kTurn;
  }
}

// Turns on several devices end at different times. Until the group has all its devices, later groups run here without a
// turn, so that they do not come before it when it can have all.
void Arbiter::Reserve(std::uint32_t group) {
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
    if (keeps_turn) DecideAgainAt(TurnKeptUntil(tenant));
    if (lingers && device.second_group != kNobody) DecideAgainAt(LingerEnd(tenant));
    if (tenant.busy || lingers) ClaimDevice(i, lingers);
    if (!(tenant.busy || keeps_turn) || !TakesTurns(i)) continue;
    takes_turn = true;
    if (device.turn_client == 0 || tenant.client < device.turn_client) device.turn_client = tenant.client;
    if (device.counted_group == group) continue;
    fills_in = fills_in || IsReserved(device, view.rank);
    ++device.groups_in_turn;
    device.counted_group = group;
  }
  if (view.is_early) {
    turns_.NoteEarly(decision_->memory[group], devices_[OnlyDeviceOf(group)].takes_turns.count, TurnWorkOf(group));
    DecideAgainAt(turns_.EarlyUntil(decision_->memory[group]));
  } else if (takes_turn && !fills_in) {
    groups_[group].has_turn = true;
    turns_.NoteOpen(decision_->memory[group]);
  }
  if (share_.Keeps(group)) share_.Admit(group);
}

// Claims the device from those below, or notes that they run beside the tenant.
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
  // The client named for a rank must not depend on any order: one with work, then the oldest.
  const bool first = device.claimant == 0;
  const bool names_better = device.claim == view.rank &&
                            std::tuple(lingers, tenant.client) < std::tuple(device.claim_lingers, device.claimant);
  if (!first && !names_better) return;
  device.claim = view.rank;
  device.claimant = tenant.client;
  device.claim_lingers = lingers;
}

// One that has passed waits for whoever has the turn now. The end of an awaited turn needs a decision, and so does its
// last part.
void Arbiter::WatchTurns(std::uint32_t group) {
  GroupView& view = groups_[group];
  GroupMemory& memory = decision_->memory[group];
  const bool has_passed = view.blocked == Why::kTurn && view.blocked_for == 0 && EndsLaunches(group);
  if (has_passed) view.blocked_for = devices_[OnlyDeviceOf(group)].turn_client;
  if (memory.turn_since_ns == 0) return;
  turns_.NoteHeld(memory, view.blocked != Why::kOpen);
  const bool ends_launches = EndsLaunches(group);
  const bool is_open = view.blocked == Why::kOpen;
  const auto tenants = roster_.TenantsOf(group);
  const bool is_awaited = std::any_of(tenants.begin(), tenants.end(), [this](std::uint32_t i) {
    return devices_[state_->tenants[i].device].awaited_by != kNobody;
  });
  if (is_open && !is_awaited) return StopEnding(group);
  if (!ends_launches) memory.ending_since_ns = 0;
  if (!is_open && ends_launches) WatchInterrupted(group);
  if (!is_open) return;
  if (ends_launches) turns_.NoteEnding(memory);
  const Turns::Work work = TurnWorkOf(group);
  view.is_ending = turns_.IsEnding(memory, work);
  view.one_launch = ends_launches && turns_.IsLongForTurn(memory);
  turns_.NoteAwaited(memory, ends_launches, work, decision_->next_decision_ns);
}

// Nobody waits for its turn any more. If that is over but for launches in flight, the next one begins.
void Arbiter::StopEnding(std::uint32_t group) {
  GroupMemory& memory = decision_->memory[group];
  if (std::exchange(memory.ending_since_ns, 0) == 0) return;
  turns_.Expire(memory, TurnWorkOf(group));
  if (groups_[group].has_turn) turns_.NoteOpen(memory);
}

// One with long launches that is held in its turn launches nothing. Where its equals are held for the same higher rank,
// none is known to wait for the turn.
void Arbiter::WatchInterrupted(std::uint32_t group) {
  if (devices_[OnlyDeviceOf(group)].takes_turns.count < 2) return;
  GroupMemory& memory = decision_->memory[group];
  turns_.NoteEnding(memory);
  if (memory.ending_since_ns == 0) turns_.NoteAwaited(memory, true, TurnWorkOf(group), decision_->next_decision_ns);
}

// Several that have their turn together do so in the driver's own slices.
bool Arbiter::EndsLaunches(std::uint32_t group) const {
  const std::uint32_t only = OnlyDeviceOf(group);
  return only != kNobody && devices_[only].limit == 1 && !share_.Keeps(group);
}

}  // namespace xschedd::policy
