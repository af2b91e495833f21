// Counting, markers and settling of one device, with a runtime that completes on command.
#include "client-shim/core/device_tracker.h"
#include "common/clock.h"
#include "fake_vendor.h"
#include "tests/catch.h"

using namespace xschedd::shim;

namespace {

struct Sink : TrackerSink {
  void Report(xschedd::abi::TransitionKind kind, std::uint64_t deadline_ns) override {
    reports.push_back(kind);
    deadlines.push_back(deadline_ns);
  }
  void Publish(const TrackerCounters& counters) override {
    in_flight = counters.in_flight;
    limit = counters.window_limit;
    submitted = counters.submitted;
    completed = counters.completed;
    gpu_time_ns = counters.gpu_time_ns;
  }
  std::vector<xschedd::abi::TransitionKind> reports;
  std::vector<std::uint64_t> deadlines;
  std::uint32_t in_flight = 0, limit = 0;
  std::uint64_t submitted = 0, completed = 0, gpu_time_ns = 0;
};

constexpr auto kBusy = xschedd::abi::TransitionKind::kBusy;
constexpr auto kIdle = xschedd::abi::TransitionKind::kIdle;
constexpr Window kNoWindow{};

StreamKey Key(std::uintptr_t handle) {
  return StreamKey{reinterpret_cast<void*>(handle), 0};
}

struct Fixture {
  FakeVendor vendor;
  Captures captures;
  Deadlines deadlines;
  Sink sink;
  DeviceTracker tracker{0, vendor.Table(), &captures, &deadlines};

  Fixture() { tracker.Reset(&sink); }

  bool TryLaunch(const StreamKey& key, const Window& window = kNoWindow, bool ok = true, LaunchKey kind = 0) {
    Ticket ticket = tracker.Enter(key, kind);
    const bool admitted = tracker.Admit(&ticket, window, false);
    if (admitted) tracker.Start(&ticket, window, false);
    tracker.Leave(ticket, ok && admitted, false, window);
    return admitted;
  }
  void Sync(SyncScope scope, const StreamKey& key) {
    const Snapshot snapshot = tracker.BeginSync(scope, key);
    tracker.EndSync(snapshot, true);
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a launch makes busy once, a synchronisation makes idle", "[tracker]") {
  REQUIRE(TryLaunch(Key(16)));
  REQUIRE(TryLaunch(Key(16)));
  CHECK(sink.reports == std::vector{kBusy});
  CHECK(sink.in_flight == 2);
  Sync(SyncScope::kStream, Key(16));
  CHECK(sink.reports == std::vector{kBusy, kIdle});
  CHECK(sink.in_flight == 0);
  CHECK(sink.submitted == 2);
  CHECK(sink.completed == 2);
}

TEST_CASE_METHOD(Fixture, "a launch that fails is not counted", "[tracker]") {
  TryLaunch(Key(16), kNoWindow, false);
  CHECK(sink.in_flight == 0);
  CHECK(sink.submitted == 0);
  CHECK(sink.reports == std::vector{kBusy, kIdle});
}

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
  tracker.NoteNonBlocking(reinterpret_cast<void*>(32));
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

TEST_CASE_METHOD(Fixture, "the window admits no more than its limit until a marker is done", "[tracker]") {
  const Window window{500, 2};
  REQUIRE(TryLaunch(Key(16), window));
  REQUIRE(TryLaunch(Key(16), window));
  CHECK_FALSE(TryLaunch(Key(16), window));
  CHECK(sink.in_flight == 2);
  CHECK(sink.limit == 2);
  vendor.Finish(reinterpret_cast<void*>(16), 1000);
  tracker.MakeRoom();
  CHECK(sink.in_flight == 0);
  CHECK(TryLaunch(Key(16), window));
}

TEST_CASE_METHOD(Fixture, "a ticket that is forced is counted like any other", "[tracker]") {
  const Window window{500, 1};
  TryLaunch(Key(16), window);
  Ticket ticket = tracker.Enter(Key(16), 0);
  CHECK_FALSE(tracker.Admit(&ticket, window, false));
  CHECK(tracker.Admit(&ticket, window, true));
  tracker.Leave(ticket, true, false, window);
  CHECK(sink.in_flight == 2);
}

TEST_CASE_METHOD(Fixture, "a thread that waits for the window makes a marker where there is none", "[tracker]") {
  TryLaunch(Key(16));
  TryLaunch(Key(16));  // no window yet: no markers behind these
  CHECK_FALSE(TryLaunch(Key(16), Window{500, 1}));
  tracker.MakeRoom();
  vendor.Finish(reinterpret_cast<void*>(16), 1000);
  tracker.MakeRoom();
  CHECK(TryLaunch(Key(16), Window{500, 1}));
}

TEST_CASE_METHOD(Fixture, "GPU time is measured from the start marker, then from marker to marker", "[tracker]") {
  const Window window{500, 4};
  void* stream = reinterpret_cast<void*>(16);
  Ticket ticket = tracker.Enter(Key(16), 0);
  tracker.Admit(&ticket, window, false);
  tracker.Start(&ticket, window, false);
  vendor.Finish(stream, 10'000);  // the start marker
  tracker.Leave(ticket, true, false, window);
  TryLaunch(Key(16), window);
  vendor.Finish(stream, 110'000);
  tracker.Poll();
  CHECK(sink.gpu_time_ns == 100'000);
  CHECK_FALSE(tracker.IsBusy());
  // Idle time is nobody's: the next interval begins at its own start marker.
  ticket = tracker.Enter(Key(16), 0);
  tracker.Admit(&ticket, window, false);
  tracker.Start(&ticket, window, false);
  vendor.Finish(stream, 900'000);
  tracker.Leave(ticket, true, false, window);
  Snapshot snapshot = tracker.BeginSync(SyncScope::kStream, Key(16));
  vendor.Finish(stream, 905'000);
  tracker.EndSync(snapshot, true);
  CHECK(sink.gpu_time_ns == 105'000);
}

TEST_CASE_METHOD(Fixture, "the agent marks a quiet stream and settles it", "[tracker]") {
  TryLaunch(Key(16));
  const std::size_t before = vendor.Recorded();
  CHECK(tracker.Tick(xschedd::MonotonicNs()) == DeviceTracker::Attention::kSoon);
  CHECK(vendor.Recorded() == before);  // not quiet yet
  const std::uint64_t later = xschedd::MonotonicNs() + 1'000'000;
  CHECK(tracker.Tick(later) == DeviceTracker::Attention::kSoon);
  CHECK(tracker.Tick(later) == DeviceTracker::Attention::kSoon);
  CHECK(vendor.Recorded() == before + 1);  // once a quiet spell
  vendor.Finish(reinterpret_cast<void*>(16), 5);
  CHECK(tracker.Tick(later) == DeviceTracker::Attention::kNone);
  CHECK(sink.reports == std::vector{kBusy, kIdle});
}

TEST_CASE_METHOD(Fixture, "while a thread synchronises the agent leaves the runtime alone", "[tracker]") {
  TryLaunch(Key(16));
  const Snapshot snapshot = tracker.BeginSync(SyncScope::kStream, Key(16));
  const std::size_t before = vendor.Recorded();
  CHECK(tracker.Tick(xschedd::MonotonicNs() + 1'000'000) == DeviceTracker::Attention::kSoon);
  CHECK(vendor.Recorded() == before);
  CHECK(vendor.queries == 0);
  tracker.EndSync(snapshot, true);
  CHECK(tracker.Tick(xschedd::MonotonicNs()) == DeviceTracker::Attention::kNone);
}

TEST_CASE_METHOD(Fixture, "a capture that forbids it: nothing recorded or queried, and nobody waits", "[tracker]") {
  captures.Begin(reinterpret_cast<void*>(64), 0);
  const Window window{500, 1};
  CHECK(TryLaunch(Key(16), window));
  CHECK(TryLaunch(Key(16), window));
  tracker.MakeRoom();
  tracker.Tick(xschedd::MonotonicNs() + 1'000'000);
  Sync(SyncScope::kDevice, StreamKey{});
  CHECK(vendor.Recorded() == 0);
  CHECK(vendor.queries == 0);
  CHECK(sink.in_flight == 0);
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

TEST_CASE_METHOD(Fixture, "a marker that cannot be recorded is waited for by nobody", "[tracker]") {
  vendor.refuses_to_record = true;
  TryLaunch(Key(16), Window{500, 1});
  tracker.MakeRoom();
  CHECK(sink.in_flight == 1);
  Sync(SyncScope::kStream, Key(16));
  CHECK(sink.in_flight == 0);
}

TEST_CASE_METHOD(Fixture, "a copy that drains its stream proves itself and what was before it, not what came meanwhile",
                 "[tracker]") {
  TryLaunch(Key(16));
  Ticket ticket = tracker.Enter(Key(16), 0);
  tracker.Admit(&ticket, kNoWindow, false);
  const Snapshot snapshot = tracker.BeginSync(SyncScope::kStream, Key(16));
  TryLaunch(Key(16));
  tracker.Leave(ticket, true, true, kNoWindow);
  tracker.EndSync(snapshot, true);
  CHECK(sink.submitted == 3);
  CHECK(sink.completed == 2);
  CHECK(sink.in_flight == 1);
}

TEST_CASE_METHOD(Fixture, "a destroyed stream is let go", "[tracker]") {
  TryLaunch(Key(16));
  TryLaunch(Key(32));
  tracker.ForgetStream(reinterpret_cast<void*>(16));
  CHECK(sink.in_flight == 1);
  tracker.ForgetDevice();
  CHECK(sink.in_flight == 0);
  CHECK_FALSE(tracker.IsBusy());
}

TEST_CASE_METHOD(Fixture, "tickets and snapshots of an ended session are void", "[tracker]") {
  Ticket ticket = tracker.Enter(Key(16), 0);
  tracker.Admit(&ticket, kNoWindow, false);
  TryLaunch(Key(16));
  const Snapshot snapshot = tracker.BeginSync(SyncScope::kDevice, StreamKey{});
  Sink second;
  tracker.Reset(nullptr);
  tracker.Reset(&second);
  TryLaunch(Key(16));
  tracker.EndSync(snapshot, true);
  tracker.Leave(ticket, true, false, kNoWindow);
  CHECK(second.in_flight == 1);
  CHECK(second.submitted == 1);
  CHECK(second.reports == std::vector{kBusy});
}

TEST_CASE_METHOD(Fixture, "a per-thread default stream is marked by its own launches only", "[tracker]") {
  const StreamKey own{reinterpret_cast<void*>(2), 4711};
  TryLaunch(own);
  CHECK(vendor.Recorded() == 2);  // start and end
  const std::size_t before = vendor.Recorded();
  tracker.Tick(xschedd::MonotonicNs() + 1'000'000);
  CHECK(vendor.Recorded() == before);
  vendor.Finish(reinterpret_cast<void*>(2), 5);
  CHECK(tracker.Tick(xschedd::MonotonicNs() + 1'000'000) == DeviceTracker::Attention::kNone);
}

TEST_CASE_METHOD(Fixture, "activity is what happened since it was last taken", "[tracker]") {
  TryLaunch(Key(16));
  TryLaunch(Key(16));
  Sync(SyncScope::kStream, Key(16));
  auto activity = tracker.TakeActivity();
  REQUIRE(activity.size() == 1);
  CHECK(activity[0].stream == Key(16));
  CHECK(activity[0].launches == 2);
  CHECK(activity[0].completions == 2);
  CHECK(tracker.TakeActivity().empty());
}
