// A tracker reports when the host waits for the device, if requested. Thread rule: one thread.
#include <optional>
#include <utility>

#include "tests/catch.h"
#include "tests/unit/shim/tracker_fixture.h"

namespace xschedd::shim {
namespace {

struct Asked : Fixture {
  Asked() { sink.wants_waits = true; }
  std::vector<abi::TransitionKind> Reports() { return std::exchange(sink.reports, {}); }
};

TEST_CASE_METHOD(Fixture, "who is not asked does not say when its host waits", "[waits]") {
  TryLaunch(Key(16));
  Sync(SyncScope::kStream, Key(16));
  CHECK(sink.reports == std::vector{kBusy, kIdle});
}

TEST_CASE_METHOD(Asked, "a host waits while it is in a call that waits, and work is unfinished", "[waits]") {
  SECTION("a stream") {
    TryLaunch(Key(16));
    const Snapshot snapshot = tracker.BeginSync(SyncScope::kStream, Key(16));
    CHECK(Reports() == std::vector{kBusy, kWaits});
    tracker.EndSync(snapshot, true);
    CHECK(Reports() == std::vector{kIdle});
  }
  SECTION("one of two streams: it goes on with the other's work unfinished") {
    TryLaunch(Key(16));
    TryLaunch(Key(32));
    const Snapshot snapshot = tracker.BeginSync(SyncScope::kStream, Key(16));
    tracker.EndSync(snapshot, true);
    CHECK(Reports() == std::vector{kBusy, kWaits, kBusy});
  }
  SECTION("in vain") {
    TryLaunch(Key(16));
    const Snapshot snapshot = tracker.BeginSync(SyncScope::kDevice, Key(0));
    tracker.EndSync(snapshot, false);
    CHECK(Reports() == std::vector{kBusy, kWaits, kBusy});
  }
  SECTION("an event") {
    TryLaunch(Key(16));
    int event = 0;
    tracker.EventRecorded(&event, Key(16));
    tracker.EndSync(tracker.BeginEventSync(&event), true);
    CHECK(Reports() == std::vector{kBusy, kWaits, kIdle});
  }
  SECTION("a copy to the host, whose call may wait") {
    Entered launch(&tracker, Key(16), 0);
    REQUIRE(launch.Admit(kNoWindow, false));
    launch.Start(false);
    launch.BeginWait(false);
    CHECK(Reports() == std::vector{kBusy, kWaits});
    launch.Leave(true, false);
    CHECK(Reports() == std::vector{kBusy});
  }
  SECTION("two threads: until neither waits") {
    TryLaunch(Key(16));
    TryLaunch(Key(32));
    TryLaunch(Key(48));
    const Snapshot first = tracker.BeginSync(SyncScope::kStream, Key(16));
    const Snapshot second = tracker.BeginSync(SyncScope::kStream, Key(32));
    tracker.EndSync(first, true);
    CHECK(Reports() == std::vector{kBusy, kWaits});
    tracker.EndSync(second, true);
    CHECK(Reports() == std::vector{kBusy});
  }
}

TEST_CASE_METHOD(Asked, "who asks does not wait", "[waits]") {
  TryLaunch(Key(16));
  int event = 0;
  tracker.EventRecorded(&event, Key(16));
  tracker.EndSync(tracker.BeginSync(SyncScope::kQuery, Key(16)), false);
  tracker.EndSync(tracker.BeginEventSync(&event, true), false);
  CHECK(Reports() == std::vector{kBusy});
}

TEST_CASE_METHOD(Asked, "a host that has nothing unfinished waits for nothing", "[waits]") {
  tracker.EndSync(tracker.BeginSync(SyncScope::kDevice, Key(0)), true);
  CHECK(Reports().empty());
}

TEST_CASE_METHOD(Asked,
                 "a host that found no room waits until it is no longer far ahead, however many launches it makes",
                 "[waits]") {
  constexpr LaunchKey kKind = 7;
  constexpr Window kTop{4'000, 1};
  for (std::uint64_t ns : {1'000'000, 2'000'000}) {  // what it takes: 1 ms
    Entered launch(&tracker, Key(16), kKind);
    REQUIRE(launch.Admit(kNoWindow, true));
    launch.Start(false);
    vendor.Finish(Key(16).handle, ns - 1'000'000);
    launch.Leave(true, false);
    const Snapshot snapshot = tracker.BeginSync(SyncScope::kStream, Key(16));
    vendor.Finish(Key(16).handle, ns);
    tracker.EndSync(snapshot, true);
  }
  Reports();
  for (int i = 0; i < 4; ++i)
    CHECK(TryLaunch(Key(16), kTop, true, kKind));
  std::optional<Entered> refused;
  refused.emplace(&tracker, Key(16), kKind);
  REQUIRE_FALSE(refused->Admit(kTop, false));
  tracker.NoteHostAhead();
  CHECK(Reports() == std::vector{kBusy, kWaits});
  // One after the other, with three in flight: nothing to report.
  for (int i = 0; i < 3; ++i) {
    tracker.NoteHostAhead();
    REQUIRE(refused->Admit(kTop, true));
    refused->Start(false);
    refused->Leave(true, false);
    refused.emplace(&tracker, Key(16), kKind);
  }
  CHECK(Reports().empty());
  // Another stream's synchronisation finds all done; the next launch finds nothing in flight.
  Sync(SyncScope::kStream, Key(16));
  Reports();
  REQUIRE(refused->Admit(kTop, false));
  CHECK(Reports() == std::vector{kBusy});
}

TEST_CASE_METHOD(Asked, "who is asked no more goes on at its next report", "[waits]") {
  TryLaunch(Key(16));
  TryLaunch(Key(32));
  const Snapshot first = tracker.BeginSync(SyncScope::kStream, Key(16));
  const Snapshot second = tracker.BeginSync(SyncScope::kStream, Key(32));
  sink.wants_waits = false;
  tracker.EndSync(first, true);
  CHECK(Reports() == std::vector{kBusy, kWaits, kBusy});
  tracker.EndSync(second, true);
  CHECK(Reports() == std::vector{kIdle});
}

}  // namespace
}  // namespace xschedd::shim
