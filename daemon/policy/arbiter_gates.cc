// Each tenant's gate after admission: held or open and why, window, time slice. Thread rule: arbiter.h.
#include <algorithm>
#include <limits>

#include "daemon/policy/arbiter.h"
#include "daemon/policy/slices.h"

namespace xschedd::policy {
namespace {

// A top client's long kernels on several streams must be able to run side by side: a HIP process has four hardware
// queues (GPU_MAX_HW_QUEUES).
constexpr std::uint32_t kTopFloor = 4;
// A second launch in flight keeps a lone tenant's pipeline full between long kernels; several tenants together keep the
// device full.
constexpr std::uint32_t kPipelineFloor = 2;

// From this number on, windows do not follow each client that becomes busy or idle: that would change those of all
// others.
constexpr std::uint32_t kMany = 8;

// Among how many a window is divided; `before`: until now.
std::uint32_t DividedBy(std::uint32_t clients, std::uint32_t before) {
  if (clients < kMany) return std::max(1u, clients);
  return clients <= before && before <= 2 * clients ? before : clients + clients / 4;
}

}  // namespace

void Arbiter::CountWindows() {
  for (std::uint32_t i = 0; i < state_->tenants.size(); ++i) {
    const Tenant& tenant = state_->tenants[i];
    const GroupView& view = groups_[tenant.group];
    const bool open = view.blocked == Why::kOpen || guard_.HasSlot(tenant.group);
    if (!tenant.busy || !open || view.is_aside || state_->groups[tenant.group].hold) continue;
    DeviceView& device = devices_[tenant.device];
    ++(CanBeOvertaken(i) ? device.background_clients : device.top_clients);
  }
  for (std::size_t i = 0; i < devices_.size(); ++i)
    decision_->devices[i].divided_by = DividedBy(devices_[i].background_clients, state_->devices[i].memory.divided_by);
}

Why Arbiter::WhyClaimed(const DeviceView& device, const Rank& rank) const {
  if (device.claim_lingers) return Why::kLinger;
  return device.claim.priority == rank.priority ? why_ : Why::kPriority;
}

std::uint64_t Arbiter::FirstClientOf(std::uint32_t group, std::uint32_t device) const {
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint32_t i : roster_.TenantsOf(group))
    if (state_->tenants[i].device == device) first = std::min(first, state_->tenants[i].client);
  return first;
}

bool Arbiter::IsInTurnOn(std::uint32_t group, std::uint32_t device) const {
  const auto tenants = roster_.TenantsOf(group);
  return std::any_of(tenants.begin(), tenants.end(), [&](std::uint32_t i) {
    const Tenant& tenant = state_->tenants[i];
    return tenant.device == device && (tenant.busy || KeepsTurn(tenant));
  });
}

// Writes in place: a Gate that is put together elsewhere and then copied costs more than all that is decided here.
void Arbiter::SetGate(std::uint32_t index, Gate& gate) const {
  gate = Gate{};
  const auto held = [&gate](Why why, std::uint64_t held_for) {
    gate.held = gate.tracked = true;
    gate.why = why;
    gate.held_for = held_for;
  };
  const Tenant& tenant = state_->tenants[index];
  const GroupView& view = groups_[tenant.group];
  const DeviceView& device = devices_[tenant.device];
  if (state_->groups[tenant.group].hold) return held(Why::kHold, 0);
  if (!view.tracked) return;
  const bool guarded = guard_.HasSlot(tenant.group);
  if (!guarded) {
    if (device.claim > view.rank) {
      gate.may_spin = true;
      return held(WhyClaimed(device, view.rank), device.claimant);
    }
    if (view.blocked == Why::kTurn || view.blocked == Why::kShare) return held(view.blocked, view.blocked_for);
    if (view.blocked != Why::kOpen) return held(Why::kGang, view.blocked_for);
    if (share_.KeepsTenant(index) && share_.WouldWait(tenant.group)) {
      return held(Why::kShare, share_.HeldFor(tenant.group));
    }
    if (view.is_ending) {
      gate.awaited = true;
      return held(Why::kTurn, FirstClientOf(device.awaited_by, tenant.device));
    }
    if (IsFull(device) && TakesTurns(index) && !IsInTurnOn(tenant.group, tenant.device)) {
      return held(Why::kTurn, device.turn_client);
    }
  }
  gate.tracked = true;
  gate.why = guarded ? Why::kGuard : Why::kOpen;
  if (!guarded && device.beside > view.rank.priority) {
    gate.why = Why::kBeside;
    gate.held_for = device.beside_client;
  }
  gate.window_us = WindowOf(index, gate.window_floor);
  gate.tells_waits = HasOthersBelow(tenant) && holders_.Measures(tenant.group);
  gate.count_may_wait = gate.tells_waits && !holders_.NeedsCount(tenant.group);
  // In both blocks of a pair its ends must be known as soon (benefit.h).
  gate.awaited = gate.tells_waits && holders_.IsMeasured(tenant.group);
  gate.may_wait = !guarded && ConcernsNobody(tenant);
}

std::uint32_t Arbiter::SliceFor(std::uint32_t index, const Gate& gate) const {
  const Tenant& tenant = state_->tenants[index];
  const DeviceView& device = devices_[tenant.device];
  if (!HasSlices(device)) return 0;
  SliceCase of{.tracked = gate.tracked && !state_->groups[tenant.group].hold,
               .guarded = gate.why == Why::kGuard,
               .can_be_held = CanBeHeld(index),
               .is_alone_in_turn = NeedsTurns(index) && device.limit + device.joiners == 1,
               .somebody_can_be = device.can_be_held,
               .lets_others_run = LetsOthersRun(index) && IsAloneOnTop(tenant) && !IsInTimeAnyway(tenant)};
  if (RunsBeside(tenant)) of.beside_us = AllowanceOf(device.active_mode).slice_us;
  return SliceOf(of);
}

// Below a group in kHeldWide: less while several clients have work in flight; and no more than another group above
// allows, whose mode costs those below less but whose window may be smaller.
std::uint32_t Arbiter::WidePercent(const DeviceView& device, const Rank& rank, std::uint32_t clients) {
  const Mode next = StrictestAbove(device.by_mode_not_away, rank, Mode::kWaitsNarrowest);
  return std::min(AllowanceOf(clients == 1 ? Mode::kHeldWide : Benefit::kRestMode).window_percent,
                  AllowanceOf(next).window_percent);
}

// In µs; 0: no limit.
std::uint32_t Arbiter::WindowOf(std::uint32_t index, std::uint32_t& floor) const {
  const Tenant& tenant = state_->tenants[index];
  const DeviceView& device = devices_[tenant.device];
  const Settings& settings = state_->settings;
  const std::uint64_t below_us = std::uint64_t{state_->devices[tenant.device].windows} * settings.window_us;
  if (CanBeOvertaken(index)) {
    if (below_us == 0) return 0;
    ModesAbove& above = Above(device, groups_[tenant.group].rank);
    if (above.window_us == 0) {
      const Mode mode = holders_.Measures() ? std::max(above.any, std::min(above.not_away, kAwayMode)) : Mode::kHeld;
      const Allowance allowance = AllowanceOf(mode);
      const std::uint32_t clients = allowance.is_each ? 1 : decision_->devices[tenant.device].divided_by;
      const std::uint32_t percent =
          mode == Mode::kHeldWide ? WidePercent(device, groups_[tenant.group].rank, clients) : allowance.window_percent;
      above.window_floor = clients == 1 || IsBeside(mode) ? kPipelineFloor : 1;
      above.window_us = std::max(1u, static_cast<std::uint32_t>(percent * below_us / 100 / clients));
    }
    floor = groups_[tenant.group].one_launch ? 1 : above.window_floor;
    return above.window_us;
  }
  const bool shares = share_.KeepsTenant(index);
  const std::uint32_t budget = shares ? settings.share_slack_us : settings.top_window_us;
  if (budget == 0) return 0;
  const std::uint32_t clients = std::max(1u, device.top_clients);
  const std::uint32_t part = std::max(1u, budget / clients);
  const auto room_ns = shares ? share_.Room(index) : std::nullopt;
  floor = room_ns ? kPipelineFloor : kTopFloor;
  if (!room_ns) return part;
  // Never less than in the background.
  const std::uint32_t least = below_us == 0 ? part : std::max(1u, static_cast<std::uint32_t>(below_us / clients));
  return std::min(part, std::max(static_cast<std::uint32_t>(*room_ns / kNsPerUs), least));
}

// Of several claimants only one is named (ClaimDevice), and so awaited; the next is named once that one is idle.
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
    if (!gate.tracked || gate.held || gate.awaited) continue;
    gate.awaited = std::find(awaited_.begin(), awaited_.end(), state_->tenants[i].client) != awaited_.end();
  }
}

}  // namespace xschedd::policy
