// A launch on a device: it leaves everything that it enters, at whatever stage it ends, and whatever happens to the
// session, stream or device meanwhile.
#include <optional>

#include "client-shim/core/device_launch.h"
#include "common/clock.h"
#include "tests/catch.h"
#include "tests/unit/shim/tracker_fixture.h"

using namespace xschedd::shim;
using xschedd::MonotonicNs;

namespace {

constexpr std::uintptr_t kStream = 16;
constexpr LaunchKey kKind = 101;
constexpr Window kLaunchWindow{500, 1};

enum Stage { kMade, kEntered, kAdmitted, kStarted, kMayWait, kDrains, kStages };

void Bring(DeviceLaunch* launch, int stage) {
  if (stage >= kEntered) launch->Enter(MonotonicNs());
  if (stage >= kAdmitted) REQUIRE(launch->Admit(kLaunchWindow, true));
  if (stage >= kStarted) launch->Start(true);
  if (stage >= kMayWait) launch->BeginWait(stage == kDrains);
}

struct Waiting : Fixture {
  Waiting() { sink.wants_waits = true; }
};

}  // namespace

TEST_CASE_METHOD(Waiting, "a launch that ends at any stage without leaving is taken back", "[launch]") {
  const int stage = GENERATE(range(0, int{kStages}));
  CAPTURE(stage);
  {
    DeviceLaunch launch(&tracker, Key(kStream), kKind);
    Bring(&launch, stage);
    CHECK(tracker.IsBusy() == (stage >= kEntered));
  }
  CHECK_FALSE(tracker.IsBusy());
  CHECK(sink.submitted == 0);
  CHECK(sink.in_flight == 0);
  CHECK(tracker.InFlightNs() == 0);
  // Nobody waits any more, and nothing is in the way of the next one.
  sink.reports.clear();
  CHECK(TryLaunch(Key(kStream), kLaunchWindow));
  CHECK(sink.reports == std::vector{kBusy});
  CHECK(sink.in_flight == 1);
}

TEST_CASE_METHOD(Fixture, "what has left does not leave again at its end", "[launch]") {
  const bool ok = GENERATE(false, true);
  {
    const Entered other(&tracker, Key(kStream));
    {
      DeviceLaunch launch(&tracker, Key(kStream), kKind);
      Bring(&launch, kStarted);
      launch.Leave(ok, false);
    }
    CHECK(sink.in_flight == (ok ? 1 : 0));
    Sync(SyncScope::kStream, Key(kStream));
    CHECK(tracker.IsBusy());  // the other has entered and not left
  }
  CHECK_FALSE(tracker.IsBusy());
  CHECK(sink.submitted == (ok ? 1 : 0));
}

TEST_CASE_METHOD(Fixture, "what could not enter has nothing to leave", "[launch]") {
  const Entered other(&tracker, Key(kStream));
  {
    DeviceLaunch launch(&tracker, Key(kStream), kKind);
    launch.Leave(true, false);
  }
  CHECK(tracker.IsBusy());
  CHECK(sink.submitted == 0);
  CHECK(tracker.InFlightNs() == 0);
}

TEST_CASE_METHOD(Waiting, "a launch that has become void is not counted, nor taken from others", "[launch]") {
  const int stage = GENERATE(range(0, int{kStages}));
  const bool is_reset = GENERATE(false, true);
  const bool leaves = GENERATE(false, true);
  CAPTURE(stage, is_reset, leaves);
  std::optional<DeviceLaunch> launch;
  Bring(&launch.emplace(&tracker, Key(kStream), kKind), stage);
  is_reset ? tracker.Reset(&sink) : tracker.ForgetDevice();
  sink.reports.clear();
  Entered other(&tracker, Key(kStream));
  REQUIRE(other.Admit(kLaunchWindow, false));
  other.BeginWait(false);
  if (leaves) launch->Leave(true, false);
  launch.reset();
  CHECK(sink.reports.back() == kWaits);
  CHECK(sink.submitted == 0);
  CHECK(tracker.InFlightNs() > 0);
  other.Leave(true, false);
  CHECK(sink.in_flight == 1);
}

TEST_CASE_METHOD(Fixture, "each stage of a void launch does nothing", "[launch]") {
  Entered launch(&tracker, Key(kStream), kKind);
  tracker.Reset(&sink);
  CHECK(launch.Admit(kLaunchWindow, false));
  launch.AwaitRoom();
  launch.Start(true);
  CHECK(launch.StopMarker() == nullptr);
  launch.BeginWait(GENERATE(false, true));
  launch.Leave(true, true);
  CHECK(vendor.Recorded() == 0);
  CHECK(sink.submitted == 0);
  CHECK_FALSE(tracker.IsBusy());
}

TEST_CASE_METHOD(Fixture, "launches and snapshots of an ended session are void", "[launch]") {
  Entered launch(&tracker, Key(kStream));
  REQUIRE(launch.Admit(kNoWindow, false));
  TryLaunch(Key(kStream));
  const Snapshot snapshot = tracker.BeginSync(SyncScope::kDevice, StreamKey{});
  Sink second;
  tracker.Reset(nullptr);
  tracker.Reset(&second);
  TryLaunch(Key(kStream));
  tracker.EndSync(snapshot, true);
  launch.Leave(true, false);
  CHECK(second.in_flight == 1);
  CHECK(second.submitted == 1);
  CHECK(second.reports == std::vector{kBusy});
}

TEST_CASE_METHOD(Fixture, "a call that drains its stream is no longer under way after a change of session",
                 "[launch]") {
  Entered launch(&tracker, Key(kStream));
  const bool has_begun = GENERATE(false, true);
  if (has_begun) {
    REQUIRE(launch.Admit(kNoWindow, false));
    launch.BeginWait(true);
  }
  tracker.Reset(&sink);
  if (!has_begun) launch.BeginWait(true);
  launch.Leave(true, true);
  // The agent looks after what comes next.
  TryLaunch(Key(kStream));
  const std::size_t before = vendor.Recorded();
  tracker.Tick(MonotonicNs() + 1'000'000);
  CHECK(vendor.Recorded() == before + 1);
}

TEST_CASE_METHOD(Fixture, "a launch whose stream is destroyed meanwhile counts on the next of that name", "[launch]") {
  REQUIRE(TryLaunch(Key(kStream)));
  Entered launch(&tracker, Key(kStream), kKind);
  REQUIRE(launch.Admit(kNoWindow, false));
  tracker.ForgetStream(Key(kStream).handle);
  CHECK(tracker.Streams() == 0);
  launch.Leave(true, false);
  CHECK(tracker.Streams() == 1);
  CHECK(sink.in_flight == 1);
  Sync(SyncScope::kStream, Key(kStream));
  CHECK(sink.completed == 2);
  CHECK_FALSE(tracker.IsBusy());
}

TEST_CASE_METHOD(Fixture, "with nothing to wait for, one call enters, admits and starts", "[launch]") {
  DeviceLaunch first(&tracker, Key(kStream), kKind);
  REQUIRE(first.Begin(kLaunchWindow, false, MonotonicNs()));
  CHECK(vendor.Recorded() == 1);  // the start marker
  first.Leave(true, false);
  DeviceLaunch second(&tracker, Key(kStream), kKind);
  CHECK_FALSE(second.Begin(kLaunchWindow, false, MonotonicNs()));
  CHECK(sink.in_flight == 1);
  vendor.Finish(Key(kStream).handle, 1000);
  second.AwaitRoom();
  REQUIRE(second.Admit(kLaunchWindow, false));
  second.Start(false);
  second.Leave(true, true);
  CHECK(sink.completed == 2);
  CHECK_FALSE(tracker.IsBusy());
}
