// A model of devices under a policy, in virtual time: kernels of open tenants run on each device one after the other,
// in turns, and those in flight when a gate shuts still run. Tenants report their GPU time in lumps.
//
// It is harder on a policy than a GPU is, whose kernels may run side by side.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "daemon/policy/decide.h"

namespace xschedd::policy::test {

// A tenant that always has work, except for a pause after every `burst` kernels (0: none).
struct Load {
  std::uint64_t kernel_ns = 0;  // 0: busy for ever without using the device
  std::uint32_t burst = 0;
  std::uint64_t pause_ns = 0;
  std::uint64_t lump_ns = 0;  // it reports its GPU time in portions of this
  std::uint64_t late_ns = 0;  // and so long after the end of the last kernel in it
};

// `kernels` at a time, then a pause; 0: it always has work.
inline Load Stepping(std::uint64_t kernel_us, std::uint32_t kernels, std::uint64_t pause_us) {
  return {.kernel_ns = kernel_us * kNsPerUs, .burst = kernels, .pause_ns = pause_us * kNsPerUs};
}

class ModelDevices {
 public:
  // `loads` are parallel to state.tenants.
  ModelDevices(State state, const std::vector<Load>& loads, std::uint64_t start_ns)
      : state_(std::move(state)),
        now_ns_(start_ns),
        device_free_ns_(state_.devices.size(), 0),
        turn_(state_.devices.size(), 0) {
    for (const Load& load : loads)
      runs_.push_back({.load = load, .resume_ns = start_ns});
    Decide();
  }

  // Runs until `end_ns`; `sample` is called each ms of virtual time.
  template <typename Sample>
  void Run(std::uint64_t end_ns, Sample sample) {
    while (now_ns_ < end_ns) {
      bool changed = Step();
      if (changed || look_ns_ <= now_ns_) Decide();
      StartKernels();
      now_ns_ += kStepNs;
      if (now_ns_ % kNsPerMs < kStepNs) sample(*this);
    }
  }

  std::uint64_t UsedNs(std::size_t tenant) const { return runs_[tenant].used_ns; }
  std::uint64_t HeldNs(std::size_t tenant) const { return runs_[tenant].held_ns; }
  bool IsOpen(std::size_t tenant) const { return !runs_[tenant].gate.held; }
  std::uint64_t Decisions() const { return decisions_; }
  std::uint64_t BothOpenNs() const { return both_open_ns_; }
  std::uint64_t Now() const { return now_ns_; }
  State& Settings() { return state_; }

 private:
  static constexpr std::uint64_t kStepNs = 20 * kNsPerUs;

  struct Report {
    std::uint64_t due_ns;
    std::uint64_t ns;
  };
  struct TenantRun {
    Load load;
    std::uint64_t resume_ns = 0;
    std::uint64_t done_ns = 0;  // when its last kernel ends
    std::uint64_t used_ns = 0;
    std::uint64_t lump_ns = 0;
    std::uint64_t held_ns = 0;
    std::uint64_t burst_ns = 0;
    std::uint32_t done_in_burst = 0;
    std::uint32_t queued = 0;
    std::deque<Report> reports = {};
    Gate gate = {};
  };

  std::uint32_t Limit(const TenantRun& run) const {
    const std::uint64_t unlimited = 64;
    if (run.gate.window_us == 0) return unlimited;
    const std::uint64_t fit = run.gate.window_us * kNsPerUs / std::max<std::uint64_t>(run.load.kernel_ns, 1);
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(fit, std::max(1u, run.gate.window_floor), unlimited));
  }

  // Returns whether a tenant's state changed.
  bool Step() {
    bool changed = false;
    std::uint32_t open = 0;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      TenantRun& run = runs_[i];
      Tenant& tenant = state_.tenants[i];
      if (!tenant.busy && run.resume_ns <= now_ns_) {
        tenant.busy = true;
        tenant.busy_since_ns = now_ns_;
        run.done_in_burst = 0;
        changed = true;
      }
      const bool has_ended = run.queued == 0 && run.done_ns <= now_ns_;
      if (tenant.busy && run.load.burst != 0 && run.done_in_burst >= run.load.burst && has_ended) {
        tenant.busy = false;
        tenant.idle_since_ns = now_ns_;
        run.resume_ns = now_ns_ + run.load.pause_ns;
        changed = true;
      }
      while (!run.reports.empty() && run.reports.front().due_ns <= now_ns_) {
        tenant.ran_ns += run.reports.front().ns;
        run.reports.pop_front();
      }
      if (tenant.busy && run.gate.held) run.held_ns += kStepNs;
      open += tenant.busy && !run.gate.held;
      // Submit what its window and its burst allow.
      if (tenant.busy && !run.gate.held && run.load.kernel_ns != 0) {
        const std::uint32_t limit = Limit(run);
        const std::uint32_t running = run.done_ns > now_ns_ ? 1 : 0;
        while (run.queued + running < limit && (run.load.burst == 0 || run.done_in_burst + run.queued < run.load.burst))
          ++run.queued, ++tenant.launched;
      }
      tenant.is_in_flight = run.queued != 0 || run.done_ns > now_ns_;
    }
    if (open > 1) both_open_ns_ += kStepNs;
    return changed;
  }

  void Decide() {
    const Decision& decision = decider_.Decide(state_, now_ns_);
    ++decisions_;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      runs_[i].gate = decision.gates[i];
      state_.tenants[i].ran_ns = state_.tenants[i].launched = 0;
    }
    for (std::size_t i = 0; i < state_.groups.size(); ++i)
      state_.groups[i].memory = decision.memory[i];
    look_ns_ = decision.next_decision_ns;
  }

  void StartKernels() {
    for (std::uint32_t device = 0; device < state_.devices.size(); ++device) {
      while (device_free_ns_[device] < now_ns_ + kStepNs) {
        const std::size_t next = NextOn(device);
        if (next == runs_.size()) break;
        TenantRun& run = runs_[next];
        turn_[device] = next + 1;
        --run.queued;
        ++run.done_in_burst;
        device_free_ns_[device] = std::max(device_free_ns_[device], now_ns_) + run.load.kernel_ns;
        run.done_ns = device_free_ns_[device];
        run.used_ns += run.load.kernel_ns;
        run.lump_ns += run.load.kernel_ns;
        if (run.lump_ns < run.load.lump_ns) continue;
        run.reports.push_back({device_free_ns_[device] + run.load.late_ns, run.lump_ns});
        run.lump_ns = 0;
      }
    }
  }

  std::size_t NextOn(std::uint32_t device) const {
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const std::size_t index = (turn_[device] + i) % runs_.size();
      if (state_.tenants[index].device == device && runs_[index].queued != 0) return index;
    }
    return runs_.size();
  }

  State state_;
  Decider decider_;
  std::uint64_t now_ns_;
  std::uint64_t look_ns_ = 0;
  std::uint64_t decisions_ = 0;
  std::uint64_t both_open_ns_ = 0;
  std::vector<TenantRun> runs_;
  std::vector<std::uint64_t> device_free_ns_;
  std::vector<std::size_t> turn_;
};

}  // namespace xschedd::policy::test
