// Computes the GPU time and the costs of work on one device from markers, the device's own stamps and known costs.
// Makes no call of the runtime: reading stamps is none. Thread rule: guarded by its device's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "client-shim/core/cost_table.h"
#include "client-shim/core/gpu_time.h"
#include "client-shim/core/interface.h"
#include "client-shim/core/launch_timer.h"
#include "client-shim/core/stream_work.h"
#include "client-shim/core/window.h"

namespace xschedd::shim {

class DeviceTimes {
 public:
  explicit DeviceTimes(const Vendor* vendor) : vendor_(vendor) {}

  CostTable& Costs() { return costs_; }
  const CostTable& Costs() const { return costs_; }
  // The average duration of all launches.
  const DurationEstimate& Average() const { return average_; }
  // Never falls before Clear.
  std::uint64_t TotalNs() const { return gpu_time_.TotalNs(); }
  // Whether launches can be timed by the device.
  bool MayTime() const { return vendor_->next_stamp != nullptr && timer_.IsUsable(); }

  // `done` ended at `to` of the marker clock and did not begin before `from`; without a value: unknown.
  void Account(const SettledWork& done, std::optional<std::uint64_t> from, std::optional<std::uint64_t> to) {
    if (done.from == TimedFrom::kCost) return AccountByCost(done.work, to);
    if (!from || !to || *to <= *from) return gpu_time_.AddUnmeasured(costs_.SettledCostNs(done.mix));
    const std::uint64_t span_ns = *to - *from;
    if (done.work.launches > 0) costs_.AddSpan(done.mix, span_ns, *to);
    std::uint64_t timed_ns = 0;
    if (done.timed != 0) {
      timer_.Expect(done.timed, *to, span_ns);
      timed_ns = MatchStamps();
    }
    // The time of a single timed launch is more exact than the cost of its kind.
    const std::uint64_t cost_ns = timed_ns != 0 && done.work.launches == 1 ? timed_ns : costs_.SettledCostNs(done.mix);
    gpu_time_.Add(*from, *to, done.work.launches, cost_ns);
    average_.Add(cost_ns != 0 ? std::min(cost_ns, span_ns) : span_ns, done.work.launches);
  }
  // For settled work without a marker behind it.
  void AccountUnmeasured(const InFlight& work, const LaunchMix& mix, TimedFrom from) {
    gpu_time_.AddUnmeasured(from == TimedFrom::kCost ? work.cost_ns : costs_.SettledCostNs(mix));
  }
  // All settled work has been accounted for.
  void EndRound() {
    MatchStamps();
    gpu_time_.EndRound();
  }

  // Starts GPU time from zero. Costs stay.
  void Clear() { gpu_time_.Clear(); }
  // The markers' time base is a new one.
  void ForgetMarkers() { timer_.Forget(); }

 private:
  void AccountByCost(const InFlight& work, std::optional<std::uint64_t> to) {
    if (to) {
      gpu_time_.Add(*to - std::min(*to, work.cost_ns), *to, work.launches, work.cost_ns);
    } else {
      gpu_time_.AddUnmeasured(work.cost_ns);
    }
    average_.Add(work.cost_ns, work.launches);
  }
  // The time of the launch that was expected last; 0: not known yet.
  std::uint64_t MatchStamps() {
    const auto add = [this](LaunchKey key, std::uint64_t ns) { costs_.AddTimed(key, ns); };
    const std::uint64_t newest_ns = timer_.Match(*vendor_, add);
    if (!timer_.IsUsable()) costs_.GiveUpTiming();
    return newest_ns;
  }

  CostTable costs_;
  const Vendor* vendor_;
  LaunchTimer timer_;
  GpuTime gpu_time_;
  DurationEstimate average_;
};

}  // namespace xschedd::shim
