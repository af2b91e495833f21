// Counting, markers and settling of one device, with a runtime that completes on command.
#include <atomic>
#include <chrono>
#include <thread>

#include "common/clock.h"
#include "tests/catch.h"
#include "tests/unit/shim/tracker_fixture.h"

using namespace xschedd::shim;

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

TEST_CASE_METHOD(Fixture, "the window admits no more than its limit until a marker is done", "[tracker]") {
  const Window window{500, 2};
  REQUIRE(TryLaunch(Key(16), window));
  REQUIRE(TryLaunch(Key(16), window));
  CHECK_FALSE(TryLaunch(Key(16), window));
  CHECK(sink.in_flight == 2);
  CHECK(sink.limit == 2);
  vendor.Finish(reinterpret_cast<void*>(16), 1000);
  tracker.PollForRoom(0);
  CHECK(sink.in_flight == 0);
  CHECK(TryLaunch(Key(16), window));
}

TEST_CASE_METHOD(Fixture, "the agent leaves the looking to a thread that will look, and not for longer", "[tracker]") {
  TryLaunch(Key(16));
  const std::uint64_t now = xschedd::MonotonicNs();
  tracker.PollForRoom(1'000'000);
  vendor.Finish(reinterpret_cast<void*>(16), 1000);
  CHECK(tracker.Tick(now + 500'000) >= now + 1'000'000);
  CHECK(sink.in_flight == 1);
  CHECK(tracker.Tick(now + 60'000'000'000) == DeviceTracker::kNever);
  CHECK(sink.in_flight == 0);
}

TEST_CASE_METHOD(Fixture, "of several threads that wait for the window one looks", "[tracker]") {
  clock.reset();  // who sleeps looks at the time
  constexpr int kThreads = 4;
  const Window window{500, 1};
  REQUIRE(TryLaunch(Key(16), window));
  std::atomic<std::size_t> waits{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      Entered launch(&tracker, Key(16), 0);
      while (!launch.Admit(window, false)) {
        launch.AwaitRoom();
        ++waits;
      }
      launch.Leave(true, true);
    });
  }
  // Who has looked, in pauses of 50 to 200 us, comes back to ask; who sleeps does so each 10 ms.
  while (waits < 200)
    std::this_thread::yield();
  const std::size_t looks = waits;
  vendor.Finish(reinterpret_cast<void*>(16), 1000);
  for (std::thread& thread : threads)
    thread.join();
  CHECK(sink.in_flight == 0);
  CHECK(sink.submitted == kThreads + 1);
  CHECK(looks < vendor.queries);  // each has asked before its sleep and behind it
}

TEST_CASE_METHOD(Fixture, "who is awaited is looked at soon, and who is not a thousand times a second at most",
                 "[tracker]") {
  TryLaunch(Key(16));
  const std::uint64_t now = xschedd::MonotonicNs();
  CHECK(tracker.Tick(now, true) < now + 200'000);
  CHECK(tracker.Tick(now + 1'000'000, true) < now + 1'200'000);
  CHECK(tracker.Tick(now + 2'000'000, false) > now + 3'000'000);
  // It does not have to begin to launch for somebody to look: the agent stays up for a while.
  vendor.Finish(reinterpret_cast<void*>(16), 1000);
  CHECK(tracker.Tick(now + 4'000'000, false) == DeviceTracker::kNever);
  TryLaunch(Key(16));
  vendor.Finish(reinterpret_cast<void*>(16), 1000);
  CHECK(tracker.Tick(now + 8'000'000, false) > now + 9'000'000);
}

TEST_CASE_METHOD(Fixture, "whose calls show its ends is left alone, until it pauses and none does", "[tracker]") {
  constexpr std::uint64_t kMillisecond = 1'000'000;
  std::uint64_t next = DeviceTracker::kNever;
  const auto now = [] { return xschedd::MonotonicNs(); };
  const auto tick_if_due = [&] {
    if (now() < next) return 0;
    vendor.Finish(reinterpret_cast<void*>(16), 1000);
    next = tracker.Tick(now(), true);
    return 1;
  };
  // Ticks in some more than a millisecond of launches; a new burst wakes the agent.
  const auto launching = [&] {
    int ticks = 0;
    if (next == DeviceTracker::kNever) next = now();
    for (const std::uint64_t end = now() + kMillisecond + kMillisecond / 5; now() < end; TestClock::Pass(20'000)) {
      DeviceLaunch launch(&tracker, Key(16), 7);
      CHECK(launch.Begin(Window{}, false, now()));
      launch.Leave(true, false);
      ticks += tick_if_due();
    }
    return ticks;
  };
  // How long the pause was before the agent found it.
  const auto pause = [&](std::uint64_t length_ns) {
    const std::uint64_t start = now();
    std::uint64_t found = 0;
    for (; now() < start + length_ns; TestClock::Pass(10'000)) {
      if (tick_if_due() == 1 && next == DeviceTracker::kNever) found = now() - start;
    }
    return found;
  };
  // Launches whose end a call shows, and a pause.
  const auto synced = [&] {
    const int ticks = launching();
    Sync(SyncScope::kStream, Key(16));
    pause(4 * kMillisecond);
    return ticks;
  };
  CHECK(launching() <= 3);
  CHECK(pause(4 * kMillisecond) > 200'000);
  CHECK(launching() > 10);  // such a pause may come again
  CHECK(pause(2 * kMillisecond) < 200'000);

  // Not if it goes on for long, nor once the program's own calls have shown some ends.
  CHECK(launching() > 10);
  for (int i = 0; i < 1'000; ++i)
    launching();
  CHECK(launching() <= 3);
  for (int i = 0; i < 3; ++i)
    synced();
  CHECK(synced() <= 3);
  CHECK(synced() <= 1);
  CHECK(launching() <= 1);

  // A moment without a launch is no pause.
  while (next != DeviceTracker::kNever) {
    TestClock::Pass(10'000);
    tick_if_due();
  }
  CHECK(launching() <= 1);
}

TEST_CASE_METHOD(Fixture, "who synchronises a moment after its work has ended is left alone, too", "[tracker]") {
  std::uint64_t next = DeviceTracker::kNever;
  int ticks = 0;
  const auto pass = [&](std::uint64_t us) {
    for (std::uint64_t passed = 0; passed < us; passed += 10) {
      TestClock::Pass(10'000);
      vendor.Finish(reinterpret_cast<void*>(16), 1000);
      if (xschedd::MonotonicNs() < next) continue;
      next = tracker.Tick(xschedd::MonotonicNs(), true);
      ++ticks;
    }
  };
  const auto request = [&](std::uint64_t pause_us) {
    for (int i = 0; i < 300; ++i) {
      DeviceLaunch launch(&tracker, Key(16), 7);
      CHECK(launch.Begin(Window{}, false, xschedd::MonotonicNs()));
      launch.Leave(true, false);
      if (next == DeviceTracker::kNever) next = xschedd::MonotonicNs();
      pass(10);
    }
    pass(pause_us);
    Sync(SyncScope::kStream, Key(16));
    pass(300);
  };
  const auto ticks_of = [&](int requests, std::uint64_t pause_us) {
    ticks = 0;
    for (int i = 0; i < requests; ++i)
      request(pause_us);
    return ticks;
  };
  // The agent finds these ends, and has to look again.
  CHECK(ticks_of(6, 4'000) > 100);
  ticks_of(6, 250);
  CHECK(ticks_of(50, 250) <= 180);  // one a millisecond
}

TEST_CASE_METHOD(Fixture, "a launch that is forced in is counted like any other", "[tracker]") {
  const Window window{500, 1};
  TryLaunch(Key(16), window);
  Entered launch(&tracker, Key(16), 0);
  CHECK_FALSE(launch.Admit(window, false));
  CHECK(launch.Admit(window, true));
  launch.Leave(true, false);
  CHECK(sink.in_flight == 2);
}

TEST_CASE_METHOD(Fixture, "a thread that waits for the window makes a marker where there is none", "[tracker]") {
  TryLaunch(Key(16));
  TryLaunch(Key(16));  // no window yet: no markers behind these
  CHECK_FALSE(TryLaunch(Key(16), Window{500, 1}));
  tracker.PollForRoom(0);
  vendor.Finish(reinterpret_cast<void*>(16), 1000);
  tracker.PollForRoom(0);
  CHECK(TryLaunch(Key(16), Window{500, 1}));
}

TEST_CASE_METHOD(Fixture, "where no marker can be recorded there is nothing to wait for", "[tracker]") {
  const Window window{500, 1};
  vendor.refuses_to_record = true;
  TryLaunch(Key(16), window);
  CHECK_FALSE(TryLaunch(Key(16), window));
  tracker.PollForRoom(0);
  CHECK(tracker.LacksMarkers());
  vendor.refuses_to_record = false;
  tracker.PollForRoom(0);
  CHECK_FALSE(tracker.LacksMarkers());
  vendor.refuses_to_record = true;
  TryLaunch(Key(32), window);
  CHECK_FALSE(tracker.LacksMarkers());  // one that was recorded before will be reached
}

TEST_CASE_METHOD(Fixture, "a marker on a stream that stands still does not stand for another stream", "[tracker]") {
  TryLaunch(Key(16));
  tracker.PollForRoom(0);
  TryLaunch(Key(32));
  tracker.PollForRoom(0);
  vendor.Finish(reinterpret_cast<void*>(32), 1000);
  tracker.PollForRoom(0);
  CHECK(sink.in_flight == 1);
}

TEST_CASE_METHOD(Fixture, "one other stream may stand still and leave the window to the rest", "[tracker]") {
  const Window window{500, 1, true};
  REQUIRE(TryLaunch(Key(16), window));
  CHECK_FALSE(TryLaunch(Key(16), window));
  REQUIRE(TryLaunch(Key(32), window));
  CHECK_FALSE(TryLaunch(Key(32), window));
  CHECK_FALSE(TryLaunch(Key(48), window));  // two do not
  Sync(SyncScope::kStream, Key(32));
  CHECK(TryLaunch(Key(48), window));
  CHECK_FALSE(TryLaunch(Key(32), window));
  Sync(SyncScope::kStream, Key(48));
  CHECK(TryLaunch(Key(32), window));
}

TEST_CASE_METHOD(Fixture, "several streams that stand still leave the window to the rest", "[tracker]") {
  const Window window{500, 1, true};
  const auto stand_still = [] {
    const std::uint64_t until = xschedd::MonotonicNs() + 10'000'000;
    while (xschedd::MonotonicNs() < until) {
    }
  };
  REQUIRE(TryLaunch(Key(16), window));
  REQUIRE(TryLaunch(Key(32), window));
  CHECK_FALSE(TryLaunch(Key(48), window));
  stand_still();
  CHECK(TryLaunch(Key(48), window));
  CHECK_FALSE(TryLaunch(Key(48), window));
}

TEST_CASE_METHOD(Fixture, "streams with launches of unknown length run side by side, one each", "[tracker]") {
  const Window window{500, 1};
  for (std::uintptr_t stream = 16; stream < 26; ++stream)
    CHECK(TryLaunch(Key(stream), window));
  CHECK_FALSE(TryLaunch(Key(16), window));
  CHECK(sink.in_flight == 10);
}

TEST_CASE_METHOD(Fixture, "one long launch on each of other streams leaves the window to short ones", "[tracker]") {
  constexpr LaunchKey kShort = 1, kLong = 2;
  auto learn = [this, time_ns = std::uint64_t{1000}](LaunchKey kind, std::uint64_t ns) mutable {
    void* stream = reinterpret_cast<void*>(96);
    Entered launch(&tracker, Key(96), kind);
    launch.Admit(kNoWindow, true);
    launch.Start(false);
    vendor.Finish(stream, time_ns);
    launch.Leave(true, false);
    const Snapshot snapshot = tracker.BeginSync(SyncScope::kStream, Key(96));
    vendor.Finish(stream, time_ns += ns);
    tracker.EndSync(snapshot, true);
  };
  learn(kShort, 100'000);
  learn(kLong, 50'000'000);
  const Window window{500, 1};
  for (std::uintptr_t stream = 16; stream < 20; ++stream)
    CHECK(TryLaunch(Key(stream), window, true, kLong));
  CHECK(TryLaunch(Key(64), window, true, kShort));
  CHECK(TryLaunch(Key(64), window, true, kShort));
  CHECK_FALSE(TryLaunch(Key(16), window, true, kLong));
}

TEST_CASE_METHOD(Fixture, "while somebody more important is busy they do not", "[tracker]") {
  const Window window{500, 1, true};
  CHECK(TryLaunch(Key(16), window));
  CHECK(TryLaunch(Key(17), window));  // the one that may stand still
  CHECK_FALSE(TryLaunch(Key(18), window));
}

TEST_CASE_METHOD(Fixture, "GPU time is measured from the start marker, then from marker to marker", "[tracker]") {
  const Window window{500, 4};
  void* stream = reinterpret_cast<void*>(16);
  const auto launch_at = [&](std::uint64_t start_ns) {
    Entered launch(&tracker, Key(16));
    REQUIRE(launch.Admit(window, false));
    launch.Start(false);
    vendor.Finish(stream, start_ns);  // the start marker
    launch.Leave(true, false);
  };
  launch_at(10'000);
  TryLaunch(Key(16), window);
  vendor.Finish(stream, 110'000);
  tracker.Poll();
  CHECK(sink.gpu_time_ns == 100'000);
  CHECK_FALSE(tracker.IsBusy());
  // Idle time is nobody's: the next interval begins at its own start marker.
  launch_at(900'000);
  const Snapshot snapshot = tracker.BeginSync(SyncScope::kStream, Key(16));
  vendor.Finish(stream, 905'000);
  tracker.EndSync(snapshot, true);
  CHECK(sink.gpu_time_ns == 105'000);
}

TEST_CASE_METHOD(Fixture, "the agent marks a quiet stream and settles it", "[tracker]") {
  TryLaunch(Key(16));
  const std::size_t before = vendor.Recorded();
  CHECK(tracker.Tick(xschedd::MonotonicNs()) != DeviceTracker::kNever);
  CHECK(vendor.Recorded() == before);  // not quiet yet
  const std::uint64_t later = xschedd::MonotonicNs() + 1'000'000;
  CHECK(tracker.Tick(later) != DeviceTracker::kNever);
  CHECK(tracker.Tick(later) != DeviceTracker::kNever);
  CHECK(vendor.Recorded() == before + 1);  // once a quiet spell
  vendor.Finish(reinterpret_cast<void*>(16), 5);
  CHECK(tracker.Tick(later) == DeviceTracker::kNever);
  CHECK(sink.reports == std::vector{kBusy, kIdle});
}

TEST_CASE_METHOD(Fixture, "while a thread synchronises the agent leaves the runtime alone", "[tracker]") {
  TryLaunch(Key(16));
  const Snapshot snapshot = tracker.BeginSync(SyncScope::kStream, Key(16));
  const std::size_t before = vendor.Recorded();
  CHECK(tracker.Tick(xschedd::MonotonicNs() + 1'000'000) != DeviceTracker::kNever);
  CHECK(vendor.Recorded() == before);
  CHECK(vendor.queries == 0);
  // Only now and then it looks, so that the GPU time of a long wait is known before its end.
  tracker.Tick(xschedd::MonotonicNs() + 10'000'000);
  CHECK(vendor.queries == 1);
  tracker.EndSync(snapshot, true);
  CHECK(tracker.Tick(xschedd::MonotonicNs()) == DeviceTracker::kNever);
}

TEST_CASE_METHOD(Fixture, "during a capture launches are marked by their own threads, and nobody else records",
                 "[tracker]") {
  TryLaunch(Key(16));
  TryLaunch(Key(32));
  captures.Begin(reinterpret_cast<void*>(64));
  vendor.TakeRecorded();
  tracker.PollForRoom(0);
  tracker.Tick(xschedd::MonotonicNs() + 1'000'000);
  Snapshot snapshot = tracker.BeginSync(SyncScope::kDevice, StreamKey{});
  tracker.EndSync(snapshot, false);
  CHECK(vendor.TakeRecorded().empty());
  TryLaunch(Key(16));
  CHECK(vendor.TakeRecorded().size() == 1);
  // The window binds, and the agent sees the end of what is marked.
  CHECK_FALSE(TryLaunch(Key(16), Window{500, 1}));
  vendor.Finish(reinterpret_cast<void*>(16), 1000);
  tracker.Tick(xschedd::MonotonicNs() + 2'000'000);
  CHECK(sink.in_flight == 1);
  CHECK(TryLaunch(Key(16), Window{500, 1}));
  captures.End(reinterpret_cast<void*>(64));
  vendor.TakeRecorded();
  tracker.Tick(xschedd::MonotonicNs() + 3'000'000);
  CHECK(vendor.TakeRecorded().size() == 1);  // behind what was launched on the other before
}

TEST_CASE_METHOD(Fixture, "what is unmarked is marked before a capture begins", "[tracker]") {
  TryLaunch(Key(16));
  TryLaunch(Key(32));
  vendor.TakeRecorded();
  tracker.PrepareForCapture();
  CHECK(vendor.TakeRecorded().size() == 2);
  tracker.PrepareForCapture();
  CHECK(vendor.TakeRecorded().empty());
}

TEST_CASE_METHOD(Fixture, "the runtime is called in relaxed mode, and the thread has its own again", "[tracker]") {
  for (const int mode : {0, 1, 2}) {
    vendor.capture_mode = mode;
    TryLaunch(Key(16), Window{500, 1});
    tracker.PollForRoom(0);
    Sync(SyncScope::kDevice, StreamKey{});
    CHECK(vendor.is_relaxed_in_calls);
    CHECK(vendor.capture_mode == mode);
  }
}

TEST_CASE_METHOD(Fixture, "once the process exits the runtime is left alone, and nobody waits", "[tracker]") {
  captures.ForbidCalls();
  const Window window{500, 1};
  CHECK(TryLaunch(Key(16), window));
  CHECK(TryLaunch(Key(16), window));
  tracker.PollForRoom(0);
  tracker.Tick(xschedd::MonotonicNs() + 1'000'000);
  Sync(SyncScope::kDevice, StreamKey{});
  CHECK(vendor.Recorded() == 0);
  CHECK(vendor.queries == 0);
  CHECK(sink.in_flight == 0);
}

TEST_CASE_METHOD(Fixture, "beside blocking streams the legacy default stream is marked inside its launches only",
                 "[tracker]") {
  const auto record_elsewhere = [this] {
    tracker.Tick(xschedd::MonotonicNs() + 1'000'000);
    tracker.PollForRoom(0);
    tracker.PrepareForCapture();
    tracker.EndSync(tracker.BeginSync(SyncScope::kDevice, StreamKey{}), false);
    tracker.EndSync(tracker.BeginSync(SyncScope::kStream, StreamKey{}), false);
  };
  TryLaunch(StreamKey{});
  vendor.TakeRecorded();
  tracker.NoteStream(reinterpret_cast<void*>(16), false);
  record_elsewhere();
  CHECK(vendor.TakeRecorded().empty());
  TryLaunch(StreamKey{});
  CHECK(vendor.TakeRecorded().size() == 1);
  record_elsewhere();
  CHECK(vendor.TakeRecorded().empty());
  // With the last of them gone it is a stream like any other.
  tracker.ForgetStream(reinterpret_cast<void*>(16));
  tracker.NoteStream(reinterpret_cast<void*>(32), true);
  TryLaunch(StreamKey{});
  vendor.TakeRecorded();
  tracker.Tick(xschedd::MonotonicNs() + 2'000'000);
  CHECK(vendor.TakeRecorded().size() == 1);
}

TEST_CASE_METHOD(Fixture, "a marker that cannot be recorded is waited for by nobody", "[tracker]") {
  vendor.refuses_to_record = true;
  TryLaunch(Key(16), Window{500, 1});
  tracker.PollForRoom(0);
  CHECK(sink.in_flight == 1);
  Sync(SyncScope::kStream, Key(16));
  CHECK(sink.in_flight == 0);
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

TEST_CASE_METHOD(Fixture, "a per-thread default stream is marked by its own launches only", "[tracker]") {
  const StreamKey own{reinterpret_cast<void*>(2), 4711};
  TryLaunch(own);
  CHECK(vendor.Recorded() == 2);  // start and end
  const std::size_t before = vendor.Recorded();
  tracker.Tick(xschedd::MonotonicNs() + 1'000'000);
  CHECK(vendor.Recorded() == before);
  vendor.Finish(reinterpret_cast<void*>(2), 5);
  CHECK(tracker.Tick(xschedd::MonotonicNs() + 1'000'000) == DeviceTracker::kNever);
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

TEST_CASE_METHOD(Fixture, "a launch that is timed gets a stop event and a marker behind it", "[tracker]") {
  const Window window{500, 4};
  constexpr LaunchKey kKind = 101;
  void* stream = reinterpret_cast<void*>(16);
  for (std::uint64_t i = 0; i < 4; ++i) {
    Entered launch(&tracker, Key(16), kKind);
    REQUIRE(launch.Admit(window, false));
    launch.Start(true);
    CHECK((launch.StopMarker() != nullptr) == (i > 0));  // a kind has to have been launched before
    vendor.Finish(stream, 10'000 * i);
    // The device took 2 us of these 9.
    const Stamp kernel{500'000 + 10'000 * i + 7'000, 500'000 + 10'000 * i + 9'000};
    if (launch.StopMarker() != nullptr) vendor.LaunchTimed(launch.StopMarker(), stream, kernel);
    launch.Leave(true, false);
    const Snapshot snapshot = tracker.BeginSync(SyncScope::kStream, Key(16));
    vendor.Finish(stream, 10'000 * i + 9'000);
    tracker.EndSync(snapshot, true);
  }
  // The first, untimed one counts as long as it may have taken, the others as long as they took.
  CHECK(sink.gpu_time_ns <= 9'000 + 9'000 + 2 * 2'000);
  CHECK(sink.gpu_time_ns >= 8'000);
  CHECK(vendor.stamps.size() == 3);
}

// ---- deadlines

TEST_CASE_METHOD(Fixture, "the earliest deadline of all busy streams is told with busy, and again when it changes",
                 "[deadline]") {
  deadlines.Set(5'000);
  deadlines.SetStream(reinterpret_cast<void*>(32), 1'000);
  TryLaunch(Key(16));
  REQUIRE(sink.reports == std::vector{kBusy});
  const std::uint64_t first = sink.deadlines[0];
  CHECK(first != 0);
  TryLaunch(Key(32));
  REQUIRE(sink.reports == std::vector{kBusy, kBusy});
  CHECK(sink.deadlines[1] < first);
  TryLaunch(Key(32));  // busy already: the same deadline
  CHECK(sink.reports.size() == 2);
  Sync(SyncScope::kStream, Key(32));
  REQUIRE(sink.reports.size() == 3);
  CHECK(sink.deadlines[2] == first);
  Sync(SyncScope::kStream, Key(16));
  CHECK(sink.reports.back() == kIdle);
  CHECK(sink.deadlines.back() == 0);
}

TEST_CASE_METHOD(Fixture, "a deadline that is set or taken away while busy is told at once", "[deadline]") {
  TryLaunch(Key(16));
  CHECK(sink.deadlines == std::vector<std::uint64_t>{0});
  deadlines.Set(1'000);
  tracker.DeadlinesChanged();
  REQUIRE(sink.deadlines.size() == 2);
  CHECK(sink.deadlines[1] != 0);
  deadlines.Set(0);
  tracker.DeadlinesChanged();
  REQUIRE(sink.deadlines.size() == 3);
  CHECK(sink.deadlines[2] == 0);
  CHECK(sink.reports == std::vector{kBusy, kBusy, kBusy});
}
