// What the tracker learns from the program's calls (core/device_proofs.cc).
#include "common/clock.h"
#include "tests/catch.h"
#include "tests/unit/shim/tracker_fixture.h"

using namespace xschedd::shim;

TEST_CASE_METHOD(Fixture, "one stream proves nothing about another", "[tracker]") {
  TryLaunch(Key(16));
  TryLaunch(Key(32));
  Sync(SyncScope::kStream, Key(16));
  CHECK(sink.in_flight == 1);
  CHECK(tracker.IsBusy());
  Sync(SyncScope::kDevice, StreamKey{});
  CHECK(sink.in_flight == 0);
  CHECK_FALSE(tracker.IsBusy());
}

TEST_CASE_METHOD(Fixture, "the legacy default stream proves blocking streams, not the others", "[tracker]") {
  tracker.NoteStream(reinterpret_cast<void*>(32), true);
  TryLaunch(StreamKey{});
  TryLaunch(Key(16));
  TryLaunch(Key(32));
  Sync(SyncScope::kStream, StreamKey{});
  CHECK(sink.in_flight == 1);
  Sync(SyncScope::kStream, Key(32));
  CHECK(sink.in_flight == 0);
}

TEST_CASE_METHOD(Fixture, "a synchronisation does not prove what was launched after it began", "[tracker]") {
  TryLaunch(Key(16));
  const Snapshot snapshot = tracker.BeginSync(SyncScope::kDevice, StreamKey{});
  TryLaunch(Key(16));
  TryLaunch(Key(32));
  tracker.EndSync(snapshot, true);
  CHECK(sink.in_flight == 2);
  CHECK(tracker.IsBusy());
}

TEST_CASE_METHOD(Fixture, "a synchronisation that fails proves nothing", "[tracker]") {
  TryLaunch(Key(16));
  tracker.EndSync(tracker.BeginSync(SyncScope::kDevice, StreamKey{}), false);
  CHECK(sink.in_flight == 1);
}

TEST_CASE_METHOD(Fixture, "a query settles like a synchronisation, and records nothing on the stream that is asked",
                 "[tracker]") {
  TryLaunch(Key(16));
  TryLaunch(Key(32));
  const std::size_t before = vendor.Recorded();
  tracker.EndSync(tracker.BeginSync(SyncScope::kQuery, Key(16)), false);
  CHECK(sink.in_flight == 2);
  Sync(SyncScope::kQuery, Key(16));
  CHECK(sink.in_flight == 1);
  Sync(SyncScope::kQuery, Key(32));
  CHECK(sink.reports == std::vector{kBusy, kIdle});
  CHECK(vendor.Recorded() == before);
}

TEST_CASE_METHOD(Fixture,
                 "only a marker that was recorded a moment ago, and has no launch behind it, makes a query ask again",
                 "[tracker]") {
  const std::uint64_t before = xschedd::MonotonicNs();
  CHECK_FALSE(tracker.IsFreshlyMarked(Key(16), before));
  TryLaunch(Key(16));
  CHECK_FALSE(tracker.IsFreshlyMarked(Key(16), before));
  const Snapshot snapshot = tracker.BeginSync(SyncScope::kStream, Key(16));  // a marker behind the launch
  CHECK(tracker.IsFreshlyMarked(Key(16), before));
  CHECK_FALSE(tracker.IsFreshlyMarked(Key(16), xschedd::MonotonicNs() + DeviceTracker::kFreshNs));
  CHECK_FALSE(tracker.IsFreshlyMarked(Key(32), before));
  tracker.EndSync(snapshot, false);
  TryLaunch(Key(16));
  CHECK_FALSE(tracker.IsFreshlyMarked(Key(16), before));
}

// An event of the program proves the launch; the agent's marker is behind that event.
TEST_CASE_METHOD(Fixture, "a stream with nothing but a marker of ours on it is not the program's", "[tracker]") {
  const StreamKey key = Key(16);
  int event = 0;
  TryLaunch(key);
  CHECK_FALSE(tracker.IsBehindOwnMarker(key));
  tracker.EventRecorded(&event, key);
  tracker.Tick(xschedd::MonotonicNs() + 1'000'000);
  CHECK_FALSE(tracker.IsBehindOwnMarker(key));  // the launch is not known to have finished
  tracker.EndSync(tracker.BeginEventSync(&event), true);
  CHECK(tracker.IsBehindOwnMarker(key));
  TryLaunch(key);
  CHECK_FALSE(tracker.IsBehindOwnMarker(key));
  // Behind a synchronisation that began after the marker had been recorded there is none.
  Sync(SyncScope::kStream, key);
  CHECK_FALSE(tracker.IsBehindOwnMarker(key));
}

// The agent is recording when the program's synchronisation begins and ends.
TEST_CASE_METHOD(Fixture, "a marker that is recorded meanwhile may come behind a synchronisation", "[tracker]") {
  const StreamKey key = Key(16);
  TryLaunch(key);
  vendor.while_recording = [&] { Sync(SyncScope::kStream, key); };
  tracker.Tick(xschedd::MonotonicNs() + 1'000'000);
  CHECK(sink.in_flight == 0);
  CHECK(tracker.IsBehindOwnMarker(key));
  tracker.ForgetOwnMarker(key);
  CHECK_FALSE(tracker.IsBehindOwnMarker(key));
}

TEST_CASE_METHOD(Fixture, "a query of the legacy default stream may meet our marker on a stream that it waits for",
                 "[tracker]") {
  tracker.NoteStream(reinterpret_cast<void*>(32), true);
  for (const std::uintptr_t other : {std::uintptr_t{16}, std::uintptr_t{32}}) {
    TryLaunch(Key(other));
    vendor.while_recording = [&] { Sync(SyncScope::kStream, Key(other)); };
    tracker.Tick(xschedd::MonotonicNs() + 1'000'000);
    CHECK(tracker.IsBehindOwnMarker(StreamKey{}) == (other == 16));
    tracker.ForgetOwnMarker(StreamKey{});
    CHECK_FALSE(tracker.IsBehindOwnMarker(StreamKey{}));
  }
}

TEST_CASE_METHOD(Fixture, "an event proves what was launched before it was recorded", "[tracker]") {
  void* event = reinterpret_cast<void*>(7);
  TryLaunch(Key(16));
  tracker.EventRecorded(event, Key(16));
  TryLaunch(Key(16));
  const Snapshot snapshot = tracker.BeginEventSync(event);
  REQUIRE(snapshot.epoch != 0);
  tracker.EndSync(snapshot, true);
  CHECK(sink.in_flight == 1);
  tracker.EventDestroyed(event);
  CHECK(tracker.BeginEventSync(event).epoch == 0);
}

TEST_CASE_METHOD(Fixture, "a copy that drains its stream proves itself and what was before it, not what came meanwhile",
                 "[tracker]") {
  TryLaunch(Key(16));
  Entered launch(&tracker, Key(16));
  REQUIRE(launch.Admit(kNoWindow, false));
  launch.BeginWait(true);
  TryLaunch(Key(16));
  launch.Leave(true, true);
  CHECK(sink.submitted == 3);
  CHECK(sink.completed == 2);
  CHECK(sink.in_flight == 1);
}

TEST_CASE_METHOD(Fixture, "after a call that may have waited, the streams are asked what it has waited for",
                 "[proofs]") {
  vendor.is_idle = GENERATE(false, true);
  TryLaunch(Key(16));
  const std::size_t before = vendor.Recorded();
  tracker.BeginImplicitSync();
  CHECK(vendor.Recorded() == before + 1);  // behind what was launched: the call waits for it, if for anything
  tracker.EndImplicitSync(true);
  CHECK(tracker.IsBusy() == !vendor.is_idle);
  CHECK_FALSE(tracker.IsBehindOwnMarker(Key(16)));
  CHECK(vendor.is_relaxed_in_calls);
}

TEST_CASE_METHOD(Fixture, "a call that failed has waited for nothing, and nothing is asked that may be captured",
                 "[proofs]") {
  const bool ok = GENERATE(false, true);
  vendor.is_idle = true;
  TryLaunch(Key(16));
  if (ok) captures.Begin(nullptr);
  tracker.BeginImplicitSync();
  tracker.EndImplicitSync(ok);
  CHECK(tracker.IsBusy());
}

TEST_CASE_METHOD(Fixture, "what the streams say is nothing to the next session", "[proofs]") {
  vendor.is_idle = true;
  tracker.BeginImplicitSync();
  tracker.Reset(&sink);
  tracker.EndImplicitSync(true);
  TryLaunch(Key(16));
  CHECK(tracker.IsBusy());
}

// A marker would be reached after the call's end, and the program would find its stream busy.
TEST_CASE_METHOD(Fixture, "while a call may wait, nobody else marks", "[proofs]") {
  tracker.BeginImplicitSync();
  TryLaunch(Key(16));
  const std::size_t before = vendor.Recorded();
  tracker.Tick(xschedd::MonotonicNs() + 10'000'000);
  CHECK(vendor.Recorded() == before);
  tracker.EndImplicitSync(true);
  tracker.Tick(xschedd::MonotonicNs() + 10'000'000);
  CHECK(vendor.Recorded() == before + 1);
}
