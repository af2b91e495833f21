#include "daemon/policy/priority.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "daemon/policy/guard.h"
#include "daemon/policy/turns.h"

namespace xschedd::policy {
namespace {

constexpr int kNobody = std::numeric_limits<int>::min();
// Long kernels on several streams of the most important client must be able to run side by side: a HIP process has four
// hardware queues (GPU_MAX_HW_QUEUES).
constexpr std::uint32_t kTopFloor = 4;

struct DeviceView {
  int top_attached = kNobody;
  int bottom_attached = std::numeric_limits<int>::max();
  // Set as groups are admitted: the priority that has the device, and for whom others are told to wait.
  int claim = kNobody;
  std::uint64_t claimant = 0;
  std::uint32_t claimant_group = 0;
  bool claim_lingers = false;
  bool awaited = false;                  // a group waits for a turn here
  std::uint32_t background_groups = 0;   // admitted, below the top attached
  std::uint32_t guarded_groups = 0;      // open by the guard
  std::uint32_t background_clients = 0;  // busy and open, below the top attached: these divide its window
  std::uint32_t top_clients = 0;         // busy and open, of the top attached priority: likewise

  bool IsMixed() const { return top_attached != kNobody && top_attached != bottom_attached; }
};

struct GroupView {
  std::uint32_t first_tenant = 0;  // into Priority::by_group_
  std::uint32_t tenant_count = 0;
  bool busy = false;
  bool tracked = false;
  bool guarded = false;
  Why blocked = Why::kOpen;  // kOpen: admitted
  std::uint64_t blocked_for = 0;
};

class Priority {
 public:
  Priority(const State& state, std::uint64_t now_ns)
      : state_(state),
        now_ns_(now_ns),
        guard_(state.settings.guard_ms_per_s, now_ns),
        turns_(state.settings.turn_ms, now_ns),
        devices_(state.devices.size()),
        groups_(state.groups),
        views_(state.groups.size()) {}

  Decision Run() {
    Survey();
    for (const std::uint32_t group : Order())
      Admit(group);
    for (const std::uint32_t group : order_) {
      WatchTurns(group);
      GiveGuardTurn(group);
    }
    CountWindows();
    for (const Tenant& tenant : state_.tenants)
      decision_.gates.push_back(GateOf(tenant));
    for (Group& group : groups_)
      decision_.memory.push_back(group.memory);
    return std::move(decision_);
  }

 private:
  // What is attached where, who is busy, and each group's tenants side by side.
  void Survey() {
    for (const Tenant& tenant : state_.tenants) {
      const Group& group = groups_[tenant.group];
      GroupView& view = views_[tenant.group];
      ++view.tenant_count;
      if (group.hold) continue;
      view.busy = view.busy || tenant.busy;
      DeviceView& device = devices_[tenant.device];
      device.top_attached = std::max(device.top_attached, group.priority);
      device.bottom_attached = std::min(device.bottom_attached, group.priority);
    }
    std::uint32_t next = 0;
    for (GroupView& view : views_) {
      view.first_tenant = next;
      next += std::exchange(view.tenant_count, 0);
    }
    by_group_.resize(state_.tenants.size());
    for (std::uint32_t i = 0; i < state_.tenants.size(); ++i) {
      const Tenant& tenant = state_.tenants[i];
      GroupView& view = views_[tenant.group];
      by_group_[view.first_tenant + view.tenant_count++] = i;
      view.tracked = view.tracked || (!groups_[tenant.group].hold && devices_[tenant.device].IsMixed());
    }
  }

  // Most important first; held ones are left out.
  const std::vector<std::uint32_t>& Order() {
    for (std::uint32_t i = 0; i < groups_.size(); ++i) {
      GroupMemory& memory = groups_[i].memory;
      if (groups_[i].hold || !views_[i].tracked) {
        memory = GroupMemory{};
        continue;
      }
      turns_.Expire(memory);
      order_.push_back(i);
    }
    std::sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
      if (groups_[a].priority != groups_[b].priority) return groups_[a].priority > groups_[b].priority;
      return Turns::Before(groups_[a], groups_[b]);
    });
    return order_;
  }

  template <typename Action>
  void ForEachTenant(const GroupView& view, Action action) const {
    for (std::uint32_t i = 0; i < view.tenant_count; ++i)
      action(state_.tenants[by_group_[view.first_tenant + i]]);
  }

  bool IsBackground(const Tenant& tenant) const {
    return groups_[tenant.group].priority < devices_[tenant.device].top_attached;
  }
  bool Lingers(const Tenant& tenant) const {
    return !tenant.busy && tenant.idle_since_ns != 0 && LingerEnd(tenant) > now_ns_;
  }
  std::uint64_t LingerEnd(const Tenant& tenant) const {
    return tenant.idle_since_ns + state_.settings.linger_us * kNsPerUs;
  }
  bool IsFull(std::uint32_t device) const {
    const std::uint32_t limit = ConcurrentLimit(state_.settings, state_.devices[device]);
    return limit != 0 && devices_[device].background_groups >= limit;
  }

  void Admit(std::uint32_t index) {
    const Group& group = groups_[index];
    GroupView& view = views_[index];
    int strongest = kNobody;
    ForEachTenant(view, [&](const Tenant& tenant) {
      const DeviceView& device = devices_[tenant.device];
      if (!tenant.busy || device.claim <= group.priority) return;
      // Of several claims, the answer to "for whom?" must not depend on the order of tenants.
      const bool says_more =
          device.claim > strongest || (device.claim == strongest && device.claimant < view.blocked_for);
      if (!says_more) return;
      strongest = device.claim;
      view.blocked = device.claim_lingers ? Why::kLinger : Why::kPriority;
      view.blocked_for = device.claimant;
    });
    if (view.blocked == Why::kOpen) WaitForTurn(view);
    if (!view.busy) {
      turns_.NoteIdle(groups_[index].memory);
      guard_.NoteIdle(groups_[index].memory);
    }
    if (view.blocked == Why::kOpen) Claim(index);
  }

  void WaitForTurn(GroupView& view) {
    ForEachTenant(view, [&](const Tenant& tenant) {
      if (!tenant.busy || !IsBackground(tenant) || !IsFull(tenant.device)) return;
      DeviceView& device = devices_[tenant.device];
      device.awaited = true;
      if (view.blocked == Why::kOpen || device.claimant < view.blocked_for) view.blocked_for = device.claimant;
      view.blocked = Why::kTurn;
    });
  }

  void Claim(std::uint32_t index) {
    Group& group = groups_[index];
    bool takes_turn = false;
    std::vector<std::uint32_t>& counted = scratch_;  // devices where this group was counted already
    counted.clear();
    ForEachTenant(views_[index], [&](const Tenant& tenant) {
      const bool lingers = Lingers(tenant);
      if (!tenant.busy && !lingers) return;
      DeviceView& device = devices_[tenant.device];
      if (lingers && device.IsMixed()) {
        decision_.next_look_ns = std::min(decision_.next_look_ns, LingerEnd(tenant));
      }
      const bool equal = device.claim == group.priority;
      const bool busier = equal && device.claim_lingers && tenant.busy;
      const bool older =
          equal && device.claimant_group == index && device.claim_lingers == lingers && tenant.client < device.claimant;
      if (device.claim < group.priority || busier || older) {
        device.claim = group.priority;
        device.claimant = tenant.client;
        device.claimant_group = index;
        device.claim_lingers = lingers;
      }
      if (!tenant.busy || !IsBackground(tenant)) return;
      takes_turn = true;
      if (std::find(counted.begin(), counted.end(), tenant.device) == counted.end()) {
        counted.push_back(tenant.device);
        ++device.background_groups;
      }
    });
    if (takes_turn) turns_.NoteOpen(group.memory);
  }

  // The turns that somebody waits for must be looked at when they end.
  void WatchTurns(std::uint32_t index) {
    if (views_[index].blocked != Why::kOpen) return;
    ForEachTenant(views_[index], [&](const Tenant& tenant) {
      if (devices_[tenant.device].awaited) turns_.NoteAwaited(groups_[index].memory, decision_.next_look_ns);
    });
  }

  void GiveGuardTurn(std::uint32_t index) {
    GroupView& view = views_[index];
    GroupMemory& memory = groups_[index].memory;
    if (!view.busy) return;
    if (view.blocked == Why::kOpen) return guard_.NoteOpen(memory);
    // Who waits for a turn among equals will get it; the guard is for who could wait for ever.
    if (view.blocked == Why::kTurn) return guard_.NoteIdle(memory);
    if ((guard_.IsOpen(memory) || guard_.IsDue(memory)) && GuardHasRoom(view)) {
      view.guarded = true;
      ForEachTenant(view, [&](const Tenant& tenant) { ++devices_[tenant.device].guarded_groups; });
      return guard_.NoteTurn(memory, decision_.next_look_ns);
    }
    guard_.NoteHeld(memory, decision_.next_look_ns);
  }

  bool GuardHasRoom(const GroupView& view) const {
    bool room = true;
    ForEachTenant(view, [&](const Tenant& tenant) {
      const std::uint32_t limit = ConcurrentLimit(state_.settings, state_.devices[tenant.device]);
      if (limit != 0 && devices_[tenant.device].guarded_groups >= limit) room = false;
    });
    return room;
  }

  void CountWindows() {
    for (const Tenant& tenant : state_.tenants) {
      const GroupView& view = views_[tenant.group];
      const bool open = view.guarded || view.blocked == Why::kOpen;
      if (!tenant.busy || !open || groups_[tenant.group].hold) continue;
      DeviceView& device = devices_[tenant.device];
      ++(IsBackground(tenant) ? device.background_clients : device.top_clients);
    }
  }

  Gate Held(Why why, std::uint64_t held_for) const {
    return Gate{.held = true, .tracked = true, .why = why, .held_for = held_for};
  }

  Gate GateOf(const Tenant& tenant) const {
    const Group& group = groups_[tenant.group];
    const GroupView& view = views_[tenant.group];
    const DeviceView& device = devices_[tenant.device];
    if (group.hold) return Held(Why::kHold, 0);
    if (!view.tracked) return Gate{};
    if (!view.guarded) {
      if (device.claim > group.priority) {
        return Held(device.claim_lingers ? Why::kLinger : Why::kPriority, device.claimant);
      }
      if (view.blocked == Why::kTurn) return Held(Why::kTurn, view.blocked_for);
      if (view.blocked != Why::kOpen) return Held(Why::kGang, view.blocked_for);
      if (!tenant.busy && IsBackground(tenant) && IsFull(tenant.device)) return Held(Why::kTurn, device.claimant);
    }
    Gate gate{.tracked = true, .why = view.guarded ? Why::kGuard : Why::kOpen};
    const bool background = IsBackground(tenant);
    const std::uint32_t budget = background ? state_.settings.window_us : state_.settings.top_window_us;
    if (budget == 0) return gate;
    const std::uint32_t sharers = std::max(1u, background ? device.background_clients : device.top_clients);
    gate.window_us = std::max(1u, budget / sharers);
    // A lone background tenant needs a second launch in flight to keep its pipeline full; several keep the device full
    // together.
    gate.window_floor = !background ? kTopFloor : sharers == 1 ? 2 : 1;
    return gate;
  }

  const State& state_;
  const std::uint64_t now_ns_;
  const Guard guard_;
  const Turns turns_;
  std::vector<DeviceView> devices_;
  std::vector<Group> groups_;  // a copy, so that memory can be carried forward
  std::vector<GroupView> views_;
  std::vector<std::uint32_t> by_group_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> scratch_;
  Decision decision_;
};

}  // namespace

Decision DecidePriority(const State& state, std::uint64_t now_ns) {
  return Priority(state, now_ns).Run();
}

}  // namespace xschedd::policy
