#include "tools/bench/simulate/scheduler.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

namespace xschedd::simulate {
namespace {

// Disjoint sets (union-find): which devices are in one component.
class Sets {
 public:
  explicit Sets(std::uint32_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0u); }
  std::uint32_t Find(std::uint32_t i) {
    while (parent_[i] != i)
      i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void Join(std::uint32_t a, std::uint32_t b) { parent_[Find(a)] = Find(b); }

 private:
  std::vector<std::uint32_t> parent_;
};

bool IsAside(const policy::State& state, std::size_t tenant) {
  return state.groups[state.tenants[tenant].group].memory.aside != 0;
}

// A more important client has work on its device.
bool IsBelowWork(const policy::State& state, std::size_t tenant) {
  const policy::Tenant& own = state.tenants[tenant];
  return std::any_of(state.tenants.begin(), state.tenants.end(), [&](const policy::Tenant& other) {
    return other.device == own.device && other.busy &&
           state.groups[other.group].priority > state.groups[own.group].priority;
  });
}

}  // namespace

Scheduler::Scheduler(const Workload& workload, const Parameters& parameters, std::vector<Lane>& lanes,
                     EventQueue& events)
    : parameters_(parameters), lanes_(lanes), events_(events) {
  if (parameters.unscheduled) return;
  Connect(workload);
  for (std::uint32_t i = 0; i < components_.size(); ++i)
    Decide(i, 0);
}

void Scheduler::Connect(const Workload& workload) {
  // A client without a group is a group of its own.
  std::vector<std::uint32_t> group_of;
  std::map<std::string, std::uint32_t> named;
  std::uint32_t groups = 0;
  for (const ClientSpec& client : workload.clients) {
    if (client.group.empty()) {
      group_of.push_back(groups++);
      continue;
    }
    const auto [found, is_new] = named.emplace(client.group, groups);
    group_of.push_back(found->second);
    groups += is_new ? 1 : 0;
  }

  Sets sets(workload.devices);
  std::vector<std::uint32_t> device_of(groups, workload.devices);
  for (const Lane& lane : lanes_) {
    std::uint32_t& first = device_of[group_of[lane.client]];
    if (first == workload.devices) first = lane.device;
    sets.Join(first, lane.device);
  }

  std::map<std::uint32_t, std::uint32_t> component_of;  // of the devices' set
  std::vector<std::uint32_t> device_index(workload.devices);
  for (std::uint32_t device = 0; device < workload.devices; ++device) {
    const auto [found, is_new] = component_of.emplace(sets.Find(device), components_.size());
    if (is_new) components_.emplace_back().state.settings = parameters_.settings;
    policy::State& state = components_[found->second].state;
    device_index[device] = static_cast<std::uint32_t>(state.devices.size());
    // As in the daemon: no limit if queues of several processes run side by side.
    state.devices.push_back({.default_max_concurrent = workload.kind.HasSlices() ? 1u : 0u});
  }

  constexpr std::uint32_t kNone = ~0u;
  std::vector<std::uint32_t> group_index(groups, kNone);
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    const ClientSpec& client = workload.clients[lane.client];
    lane.component = component_of.at(sets.Find(lane.device));
    Component& component = components_[lane.component];
    policy::State& state = component.state;
    std::uint32_t& group = group_index[group_of[lane.client]];
    if (group == kNone) {
      group = static_cast<std::uint32_t>(state.groups.size());
      state.groups.push_back({.id = group_of[lane.client] + 1u, .priority = client.priority, .weight = client.weight});
    }
    if (!client.owner.empty() && state.groups[group].owner == policy::kNoOwner) {
      const auto number = static_cast<std::uint32_t>(component.owners.size());
      state.groups[group].owner = component.owners.emplace(client.owner, number).first->second;
    }
    state.groups[group].priority = std::max(state.groups[group].priority, client.priority);
    state.groups[group].weight = std::max(state.groups[group].weight, client.weight);
    lane.tenant = static_cast<std::uint32_t>(state.tenants.size());
    policy::Tenant tenant;
    tenant.client = lane.client + 1u;
    tenant.group = group;
    tenant.device = device_index[lane.device];
    tenant.deadline_after_ns = client.deadline_ns;
    state.tenants.push_back(tenant);
    component.lanes.push_back(i);
    component.accounts.emplace_back();
  }
}

void Scheduler::Touch(const Lane& lane, std::uint64_t now_ns) {
  if (parameters_.unscheduled) return;
  Component& component = components_[lane.component];
  if (component.is_touched) return;
  component.is_touched = true;
  events_.Push(now_ns + parameters_.decision_us * policy::kNsPerUs, EventKind::kDecide, lane.component);
}

void Scheduler::DecideIfDue(std::uint32_t index, std::uint64_t now_ns) {
  Component& component = components_[index];
  if (component.look_event_ns == now_ns) component.look_event_ns = policy::kNever;
  if (component.next_decision_ns <= now_ns) return Decide(index, now_ns);
  if (component.next_decision_ns >= component.look_event_ns) return;
  component.look_event_ns = component.next_decision_ns;
  events_.Push(component.next_decision_ns, EventKind::kLook, index);
}

void Scheduler::Decide(std::uint32_t index, std::uint64_t now_ns) {
  Component& component = components_[index];
  component.is_touched = false;
  const policy::Decision* decision = nullptr;
  do {
    Observe(component, now_ns);
    decision = &decider_.Decide(component.state, now_ns);
    ++decisions_;
    for (std::size_t i = 0; i < component.state.groups.size(); ++i)
      component.state.groups[i].memory = decision->memory[i];
    for (std::size_t i = 0; i < component.state.devices.size(); ++i)
      component.state.devices[i].memory = decision->devices[i];
  } while (Apply(component, *decision, now_ns));
  component.next_decision_ns = decision->next_decision_ns;
  if (component.next_decision_ns < component.look_event_ns) {
    component.look_event_ns = component.next_decision_ns;
    events_.Push(component.next_decision_ns, EventKind::kLook, index);
  }
}

void Scheduler::Observe(Component& component, std::uint64_t now_ns) {
  for (std::size_t i = 0; i < component.lanes.size(); ++i) {
    const Lane& lane = lanes_[component.lanes[i]];
    policy::Tenant& tenant = component.state.tenants[i];
    Account& account = component.accounts[i];
    const bool busy = lane.busy && lane.gate.tracked;
    if (busy && !tenant.busy) {
      tenant.busy_since_ns = lane.busy_changed_ns;
      account.burst.Begin(true, lane.busy_changed_ns);
    } else if (!busy && tenant.busy && lane.gate.tracked) {
      tenant.idle_since_ns = lane.busy_changed_ns;
      if (account.held.IsRunning()) account.burst.AddHeld(account.held.Run(false, lane.busy_changed_ns));
      account.beside.Run(false, lane.busy_changed_ns);
      account.burst.End(lane.busy_changed_ns);
      tenant.usual_ns = account.burst.UsualNs();
    }
    tenant.busy = busy;
    // A thread outside any call to the device is not known to wait, so kDepth does not count.
    tenant.waits = busy && lane.gate.tells_waits && lane.waiting == Waiting::kSync;
    tenant.burst_ns = busy ? account.burst.OpenNs(now_ns, account.held.SinceNs()) : 0;
    tenant.ran_ns = lane.published_ns - account.seen_ns;
    tenant.deadline_ns = busy ? lane.deadline_ns : 0;
    account.seen_ns = lane.published_ns;
    // As the shim counts: only tracked launches.
    tenant.launched = lane.gate.tracked ? lane.launched - account.launched : 0;
    account.launched = lane.launched;
    tenant.is_in_flight = lane.gate.tracked && lane.InFlight() > 0;
  }
}

bool Scheduler::Apply(Component& component, const policy::Decision& decision, std::uint64_t now_ns) {
  bool is_newly_tracked = false;
  for (std::size_t i = 0; i < component.lanes.size(); ++i) {
    Lane& lane = lanes_[component.lanes[i]];
    Account& account = component.accounts[i];
    const policy::Gate& gate = decision.gates[i];
    const policy::Gate before = lane.gate;
    if (gate.tracked && !before.tracked && lane.busy) is_newly_tracked = true;
    // What it ran untracked does not count.
    if (gate.tracked && !before.tracked) lane.Settle(now_ns);
    lane.gate = gate;
    if (gate.held != before.held || gate.tracked != before.tracked || gate.window_us != before.window_us ||
        gate.window_floor != before.window_floor) {
      ++gate_changes_;
    }
    const bool has_work = component.state.tenants[i].busy;
    const bool was_held = account.held.IsRunning();
    const std::uint64_t held = account.held.Run(has_work && gate.held, now_ns);
    if (was_held && !account.held.IsRunning()) account.burst.AddHeld(held);
    const bool is_beside = (has_work && gate.why == policy::Why::kBeside) ||
                           (lane.busy && IsAside(component.state, i) && IsBelowWork(component.state, i));
    account.beside.Run(is_beside, now_ns);
    if (lane.is_waking) continue;
    const bool goes_on = (lane.waiting == Waiting::kGate && !gate.held) ||
                         (lane.waiting == Waiting::kWindow && !gate.held && lane.HasRoom());
    if (!goes_on) continue;
    lane.is_waking = true;
    if (lane.waiting == Waiting::kGate) {
      events_.Push(now_ns + parameters_.wake_us * policy::kNsPerUs, EventKind::kWake, component.lanes[i]);
    } else {
      events_.Push(now_ns + parameters_.poll_us * policy::kNsPerUs, EventKind::kPoll, component.lanes[i]);
    }
  }
  return is_newly_tracked;
}

std::uint64_t Scheduler::HeldNs(const Lane& lane, std::uint64_t now_ns) const {
  if (parameters_.unscheduled) return 0;
  return components_[lane.component].accounts[lane.tenant].held.SumNs(now_ns);
}

std::uint64_t Scheduler::BesideNs(const Lane& lane, std::uint64_t now_ns) const {
  if (parameters_.unscheduled) return 0;
  return components_[lane.component].accounts[lane.tenant].beside.SumNs(now_ns);
}

}  // namespace xschedd::simulate
