// One device's tracker above a runtime that completes on command, and a clock of the test. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "client-shim/core/device_launch.h"
#include "common/clock.h"
#include "tests/unit/shim/fake_vendor.h"
#include "tests/unit/shim/test_clock.h"

namespace xschedd::shim {

struct Sink : TrackerSink {
  void Report(abi::TransitionKind kind, std::uint64_t deadline_ns) override {
    reports.push_back(kind);
    deadlines.push_back(deadline_ns);
  }
  abi::LedgerDevice& Counters() override { return counters; }
  bool WantsWaits() const override { return wants_waits; }
  bool WantsCount() const override { return wants_count; }
  bool wants_waits = false;
  bool wants_count = false;
  std::vector<abi::TransitionKind> reports;
  std::vector<std::uint64_t> deadlines;
  abi::LedgerDevice counters{};
  const abi::Word &in_flight = counters.in_flight, &limit = counters.window_limit;
  const abi::Counter &submitted = counters.submitted, &completed = counters.completed,
                     &gpu_time_ns = counters.gpu_time_ns;
};

inline constexpr auto kBusy = abi::TransitionKind::kBusy;
inline constexpr auto kIdle = abi::TransitionKind::kIdle;
inline constexpr auto kWaits = abi::TransitionKind::kWaits;
inline constexpr Window kNoWindow{};

inline StreamKey Key(std::uintptr_t handle) {
  return StreamKey{reinterpret_cast<void*>(handle), 0};
}

// A launch that has entered.
struct Entered : DeviceLaunch {
  Entered(DeviceTracker* tracker, const StreamKey& stream, LaunchKey key = 0, LaunchKey function = 0)
      : DeviceLaunch(tracker, stream, key, function) {
    Enter(MonotonicNs());
  }
};

struct Fixture {
  std::optional<TestClock> clock{std::in_place};  // without it, the machine's
  FakeVendor vendor;
  Captures captures;
  Deadlines deadlines;
  Sink sink;
  DeviceTracker tracker{0, vendor.Table(), &captures, &deadlines};

  Fixture() { tracker.Reset(&sink); }

  bool TryLaunch(const StreamKey& key, const Window& window = kNoWindow, bool ok = true, LaunchKey kind = 0) {
    Entered launch(&tracker, key, kind);
    const bool admitted = launch.Admit(window, false);
    if (admitted) launch.Start(false);
    launch.Leave(ok && admitted, false);
    return admitted;
  }
  void Sync(SyncScope scope, const StreamKey& key) {
    const Snapshot snapshot = tracker.BeginSync(scope, key);
    tracker.EndSync(snapshot, true);
  }
};

}  // namespace xschedd::shim
