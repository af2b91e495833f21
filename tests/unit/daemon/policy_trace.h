// Random traces for the policies' properties: groups of tenants on a few devices, whose work arrives, is done as far as
// gates allow, and ends; priorities, weights and holds that change meanwhile. Virtual time, event by event; the same
// seed always makes the same trace.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "daemon/policy/decide.h"

namespace xschedd::policy::test {

class Trace {
 public:
  Trace(Name name, std::uint32_t seed) : random_(seed) {
    state.settings.name = name;
    state.settings.linger_us = Chance(2) ? 200 : 0;
    const std::uint32_t devices = 1 + Below(3);
    limited_ = Chance(3);
    for (std::uint32_t i = 0; i < devices; ++i)
      state.devices.push_back({limited_ ? 1 + Below(2) : 0});
    const std::uint32_t groups = 2 + Below(6);
    for (std::uint32_t i = 0; i < groups; ++i)
      AddGroup(i + 1);
  }

  // Goes on to the next event; false when that is no tenant's or administrator's doing, but the time to look again.
  bool Advance(std::uint64_t next_look_ns) {
    std::uint64_t next = std::min(next_look_ns, NextTransition());
    if (next_change_ns_ == 0) next_change_ns_ = now_ns + Between(1, 300 * kNsPerMs);
    next = std::min(next, next_change_ns_);
    Progress(next - now_ns);
    now_ns = next;
    bool changed = Transitions();
    if (now_ns >= next_change_ns_) {
      Change();
      next_change_ns_ = 0;
      changed = true;
    }
    return changed;
  }

  void Apply(const Decision& decision) {
    gates_ = decision.gates;
    for (std::size_t i = 0; i < state.groups.size(); ++i)
      state.groups[i].memory = decision.memory[i];
    for (Tenant& tenant : state.tenants)
      tenant.ran_ns = 0;
  }

  bool IsLimited() const { return limited_; }
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
    std::uint64_t unreported_ns = 0;
    bool uses_device = true;
  };

  bool Chance(std::uint32_t one_in) { return Below(one_in) == 0; }
  std::uint64_t Between(std::uint64_t low, std::uint64_t high) { return low + random_() % (high - low + 1); }

  void AddGroup(std::uint64_t id) {
    Group group{.id = id, .priority = static_cast<int>(Below(3)) * 10};
    if (Chance(2)) group.weight = static_cast<std::uint32_t>(Between(1, 4)) * 50;
    const auto index = static_cast<std::uint32_t>(state.groups.size());
    const std::uint64_t deadline = Chance(2) ? Between(5, 500) * kNsPerMs : 0;
    const bool endless = Chance(3);
    const bool uses_device = !Chance(6);
    const std::uint64_t mean = Between(50, 20'000) * kNsPerUs;
    const std::uint64_t pause = Between(20, 30'000) * kNsPerUs;
    const std::uint64_t lump = Chance(2) ? 3 * kNsPerMs : 0;
    const std::uint32_t count = 1 + (Chance(2) ? Below(3) : 0);
    for (std::uint32_t i = 0; i < count; ++i) {
      Tenant tenant{
          .client = id * 100 + i, .group = index, .device = Below(static_cast<std::uint32_t>(state.devices.size()))};
      tenant.deadline_after_ns = deadline;
      if (deadline != 0 && Chance(2)) tenant.usual_ns = Between(1, 20) * kNsPerMs;
      state.tenants.push_back(tenant);
      work_.push_back({.resume_ns = now_ns + Between(0, 5 * kNsPerMs),
                       .mean_ns = endless ? 0 : mean,
                       .pause_ns = pause,
                       .lump_ns = lump,
                       .uses_device = uses_device});
    }
    state.groups.push_back(group);
    gates_.resize(state.tenants.size());
  }

  // How many run side by side on the tenant's device, if it runs at all.
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
        tenant.busy = false;
        tenant.idle_since_ns = now_ns;
        tenant.deadline_ns = 0;
        work.resume_ns = now_ns + Between(1, 2 * work.pause_ns);
        changed = true;
      }
    }
    return changed;
  }

  // What an administrator or a client may do at any time.
  void Change() {
    Group& group = state.groups[Below(static_cast<std::uint32_t>(state.groups.size()))];
    switch (Below(4)) {
      case 0:
        group.hold = !group.hold;
        break;
      case 1:
        group.priority = static_cast<int>(Below(3)) * 10;
        break;
      case 2:
        group.weight = static_cast<std::uint32_t>(Between(1, 4)) * 50;
        break;
      default:
        group.hold = false;
    }
  }

  std::mt19937 random_;
  std::vector<Work> work_;
  std::vector<Gate> gates_;
  bool limited_ = false;
  std::uint64_t next_change_ns_ = 0;
};

}  // namespace xschedd::policy::test
