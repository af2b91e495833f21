// Random traces for tests of properties of policies: groups of tenants on a few devices. Work arrives, runs as far as
// gates allow, and ends; groups and ranks come and go; priorities, weights and holds change. Virtual time, event by
// event; the same seed always makes the same trace.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "daemon/policy/decide.h"
#include "tests/unit/daemon/policy_memory.h"

namespace xschedd::policy::test {

class Trace {
 public:
  Trace(Name name, std::uint32_t seed)
      : random_(seed),
        behaviour_(seed),
        owners_(seed),
        flights_(seed),
        joins_(seed),
        launch_ns_((seed % 4 == 0 ? 2'000 : 100) * kNsPerUs) {
    Settings& settings = state.settings;
    settings.name = name;
    settings.linger_us = Chance(2) ? 0 : static_cast<std::uint32_t>(Between(50, 5'000));
    settings.guard_ms_per_s = Chance(8) ? 0 : static_cast<std::uint32_t>(Between(1, Chance(4) ? 500 : 20));
    settings.turn_ms = static_cast<std::uint32_t>(Between(1, 50));
    settings.tolerance_percent = static_cast<std::uint32_t>(behaviour_() % 4 * 20);
    if (Chance(2)) settings.share_slack_us = static_cast<std::uint32_t>(Between(500, 20'000));
    pace_ = Chance(2) ? 1 : 20;
    weights_ = Chance(2);
    const bool limited = Chance(2);
    const std::uint32_t devices = 1 + Below(3);
    for (std::uint32_t i = 0; i < devices; ++i)
      state.devices.push_back({.default_max_concurrent = limited ? 1 + Below(2) : 0, .windows = 1 + 3 * Below(2)});
    const std::uint32_t groups = 2 + Below(6);
    for (std::uint32_t i = 0; i < groups; ++i)
      AddGroup();
  }

  // Advances to the next event. False if nothing changed and only the time for the next decision came.
  bool Advance(std::uint64_t next_decision_ns) {
    std::uint64_t next = std::min(next_decision_ns, NextTransition());
    if (next_change_ns_ == 0) next_change_ns_ = now_ns + Between(1, 300 * kNsPerMs * pace_);
    next = std::min(next, next_change_ns_);
    Progress(next - now_ns);
    now_ns = next;
    bool changed = Transitions();
    Claims();
    if (now_ns >= next_change_ns_) {
      Change();
      next_change_ns_ = 0;
      changed = true;
    }
    return changed;
  }

  void Apply(const Decision& decision) {
    gates_ = decision.gates;
    KeepMemory(decision, state);
  }

  std::uint32_t Below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }
  std::mt19937& Random() { return random_; }

  State state;
  std::uint64_t now_ns = 1'000 * kNsPerS;

 private:
  struct Work {
    std::uint64_t left_ns = 0;    // of this burst
    std::uint64_t resume_ns = 0;  // when the next one comes
    std::uint64_t mean_ns = 0;    // of a burst; 0: without end, and it may not even use the device
    std::uint64_t pause_ns = 0;
    std::uint64_t lump_ns = 0;
    std::uint64_t launch_ns = 0;  // what each launch does; 0: they are not counted
    std::uint64_t ran_ns = 0;
    std::uint64_t unreported_ns = 0;
    bool uses_device = true;
  };

  bool Chance(std::uint32_t one_in) { return Below(one_in) == 0; }
  std::uint64_t Between(std::uint64_t low, std::uint64_t high) { return low + random_() % (high - low + 1); }

  void AddGroup() {
    Group group{.id = next_group_++, .priority = static_cast<int>(Below(3)) * 10};
    if (const std::uint32_t owner = owners_() % 4; owner != 0) group.owner = owner - 1;
    group.accounted = owners_() % 8 == 0;
    group.memory.joins = joins_() % 4 == 0;
    if (weights_ && Chance(2)) group.weight = static_cast<std::uint32_t>(Between(1, 4)) * 50;
    const auto index = static_cast<std::uint32_t>(state.groups.size());
    state.groups.push_back(group);
    const Work work{.mean_ns = Chance(3) ? 0 : Between(50, 20'000) * kNsPerUs * pace_,
                    .pause_ns = Between(20, 30'000) * kNsPerUs * pace_,
                    .lump_ns = Chance(2) ? 3 * kNsPerMs : 0,
                    .launch_ns = behaviour_() % 4 * launch_ns_,
                    .uses_device = !Chance(6)};
    const std::uint64_t deadline = Chance(2) ? Between(5, 500) * kNsPerMs : 0;
    const std::uint32_t count = 1 + (Chance(2) ? Below(3) : 0);
    for (std::uint32_t i = 0; i < count; ++i)
      AddTenant(index, work, Chance(4) ? 0 : deadline);
  }

  void AddTenant(std::uint32_t group, Work work, std::uint64_t deadline_ns) {
    Tenant tenant{.client = next_client_++,
                  .group = group,
                  .device = Below(static_cast<std::uint32_t>(state.devices.size())),
                  .deadline_after_ns = deadline_ns};
    if (deadline_ns != 0 && Chance(2)) tenant.usual_ns = Between(1, 20) * kNsPerMs;
    work.resume_ns = now_ns + Between(1, 5 * kNsPerMs);
    state.tenants.push_back(tenant);
    work_.push_back(work);
    gates_.emplace_back();
  }

  void RemoveTenant(std::size_t index) {
    const auto at = static_cast<std::ptrdiff_t>(index);
    state.tenants.erase(state.tenants.begin() + at);
    work_.erase(work_.begin() + at);
    gates_.erase(gates_.begin() + at);
  }

  void RemoveGroup(std::uint32_t group) {
    for (std::size_t i = state.tenants.size(); i-- > 0;) {
      if (state.tenants[i].group == group) {
        RemoveTenant(i);
      } else if (state.tenants[i].group > group) {
        --state.tenants[i].group;
      }
    }
    state.groups.erase(state.groups.begin() + static_cast<std::ptrdiff_t>(group));
  }

  std::size_t SizeOf(std::uint32_t group) const {
    return static_cast<std::size_t>(std::count_if(state.tenants.begin(), state.tenants.end(),
                                                  [&](const Tenant& tenant) { return tenant.group == group; }));
  }

  // How many tenants run side by side on the tenant's device; 0 if it does not run.
  std::uint64_t Rate(std::size_t index) const {
    if (!Runs(index)) return 0;
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < work_.size(); ++i)
      count += state.tenants[i].device == state.tenants[index].device && Runs(i);
    return count;
  }
  bool Runs(std::size_t i) const { return state.tenants[i].busy && !gates_[i].held && work_[i].uses_device; }

  std::uint64_t NextTransition() const {
    std::uint64_t next = kNever;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      if (!state.tenants[i].busy) {
        next = std::min(next, std::max(work_[i].resume_ns, now_ns + 1));
      } else if (const std::uint64_t rate = Rate(i); rate != 0 && work_[i].mean_ns != 0) {
        next = std::min(next, now_ns + std::max<std::uint64_t>(work_[i].left_ns * rate, 1));
      }
    }
    return next;
  }

  void Progress(std::uint64_t elapsed_ns) {
    std::vector<std::uint64_t> ran(work_.size());
    for (std::size_t i = 0; i < work_.size(); ++i)
      if (const std::uint64_t rate = Rate(i); rate != 0) ran[i] = elapsed_ns / rate;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      work_[i].left_ns -= std::min(work_[i].left_ns, ran[i]);
      work_[i].unreported_ns += ran[i];
      if (const std::uint64_t each = work_[i].launch_ns; each != 0)
        state.tenants[i].launched += (work_[i].ran_ns + ran[i]) / each - work_[i].ran_ns / each;
      work_[i].ran_ns += ran[i];
      if (work_[i].unreported_ns < work_[i].lump_ns) continue;
      state.tenants[i].ran_ns += work_[i].unreported_ns;
      state.tenants[i].burst_ns += work_[i].unreported_ns;
      work_[i].unreported_ns = 0;
    }
  }

  bool Transitions() {
    bool changed = false;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      Tenant& tenant = state.tenants[i];
      Work& work = work_[i];
      if (!tenant.busy && work.resume_ns <= now_ns) {
        tenant.busy = true;
        tenant.busy_since_ns = now_ns;
        tenant.burst_ns = 0;
        tenant.deadline_ns = tenant.deadline_after_ns == 0 ? 0 : now_ns + tenant.deadline_after_ns;
        work.left_ns = Between(1, 2 * std::max<std::uint64_t>(work.mean_ns, 1));
        changed = true;
      } else if (tenant.busy && work.mean_ns != 0 && work.left_ns == 0) {
        tenant.busy = tenant.waits = false;
        tenant.idle_since_ns = now_ns;
        tenant.deadline_ns = 0;
        work.resume_ns = now_ns + Between(1, 2 * work.pause_ns);
        changed = true;
      } else if (tenant.busy && Chance(4)) {
        tenant.waits = !tenant.waits;
        changed = true;
      }
    }
    return changed;
  }

  // A client may write anything there.
  void Claims() {
    for (Tenant& tenant : state.tenants)
      tenant.is_in_flight = flights_() % 4 != 0;
  }

  // Does something that an administrator or a client may do at any time.
  void Change() {
    const std::uint32_t index = Below(static_cast<std::uint32_t>(state.groups.size()));
    Group& group = state.groups[index];
    switch (Below(9)) {
      case 0:
        group.hold = !group.hold;
        break;
      case 1:
        group.priority = static_cast<int>(Below(3)) * 10;
        break;
      case 2:
        if (weights_) group.weight = static_cast<std::uint32_t>(Between(1, 4)) * 50;
        break;
      case 3:
        if (state.groups.size() < kMaxGroups) AddGroup();
        break;
      case 4:
        if (state.groups.size() > 2) RemoveGroup(index);
        break;
      case 5:
        if (SizeOf(index) < 4) AddTenant(index, {.mean_ns = 5 * kNsPerMs, .pause_ns = 5 * kNsPerMs}, 0);
        break;
      case 6: {
        const std::size_t tenant = Below(static_cast<std::uint32_t>(state.tenants.size()));
        if (SizeOf(state.tenants[tenant].group) > 1) RemoveTenant(tenant);
        break;
      }
      default:
        group.hold = false;
    }
  }

  static constexpr std::size_t kMaxGroups = 8;
  std::mt19937 random_;
  std::mt19937 behaviour_;  // of tenants beside others
  std::mt19937 owners_;
  std::mt19937 flights_;
  std::mt19937 joins_;  // others' turns
  std::vector<Work> work_;
  std::vector<Gate> gates_;
  std::uint64_t launch_ns_;  // launches take up to three times as long
  std::uint64_t pace_ = 1;   // factor of all other durations
  bool weights_ = false;
  std::uint64_t next_group_ = 1;
  std::uint64_t next_client_ = 1;
  std::uint64_t next_change_ns_ = 0;
};

}  // namespace xschedd::policy::test
