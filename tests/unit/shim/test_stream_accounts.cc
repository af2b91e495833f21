// Launches that are counted in their stream's account: which of them are, and that nobody who looks sees a difference.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "client-shim/core/stream_accounts.h"
#include "tests/catch.h"
#include "tests/unit/shim/tracker_fixture.h"

using namespace xschedd::shim;
using xschedd::MonotonicNs;

namespace {

constexpr std::uintptr_t kStream = 16, kOther = 32;
constexpr LaunchKey kKind = 101, kNewKind = 102;
constexpr std::uint64_t kCostNs = 5'000;
constexpr Window kWindow{2'000, 8};
constexpr std::uint64_t kWindowNs = std::uint64_t{kWindow.us} * 1000;

struct Accounts : Fixture {
  std::uint64_t device_ns = 1'000'000;

  bool Launch(const StreamKey& stream, const Window& window = kWindow, LaunchKey kind = kKind, bool ok = true) {
    DeviceLaunch launch(&tracker, stream, kind);
    const bool is_begun = launch.Begin(window, false, MonotonicNs());
    launch.Leave(is_begun && ok, false);
    return is_begun;
  }
  // Whether the ledger, which shows what the device itself has counted, lacks the launch.
  bool IsOnAccount(const StreamKey& stream, const Window& window = kWindow, LaunchKey kind = kKind) {
    const std::uint64_t before = sink.submitted;
    REQUIRE(Launch(stream, window, kind));
    return sink.submitted == before;
  }
  // The kind's cost is known from moments alone.
  void LearnCost(const StreamKey& stream, LaunchKey kind) {
    for (int i = 0; i < 2; ++i) {
      DeviceLaunch launch(&tracker, stream, kind);
      REQUIRE(launch.Begin(kWindow, false, MonotonicNs()));
      vendor.Finish(stream.handle, device_ns += 1000);  // the start marker
      launch.Leave(true, false);
      const Snapshot snapshot = tracker.BeginSync(SyncScope::kStream, stream);
      vendor.Finish(stream.handle, device_ns += kCostNs);
      tracker.EndSync(snapshot, true);
    }
  }
  // And the stream is busy with it.
  void Learn(const StreamKey& stream = Key(kStream)) {
    LearnCost(stream, kKind);
    REQUIRE(Launch(stream));
  }
};

}  // namespace

TEST_CASE_METHOD(Accounts, "a launch of a known kind on a busy stream is counted there, until somebody looks",
                 "[accounts]") {
  Learn();
  const std::uint64_t before = sink.submitted;
  const std::uint64_t in_flight_ns = tracker.InFlightNs();
  for (int i = 0; i < 10; ++i)
    CHECK(IsOnAccount(Key(kStream)));
  CHECK(tracker.InFlightNs() == in_flight_ns + 10 * kCostNs);
  CHECK(sink.submitted == before + 10);
  CHECK(IsOnAccount(Key(kStream)));  // who has only looked has taken nothing back
}

TEST_CASE_METHOD(Accounts, "where the daemon needs it, it can soon see how many launches there were", "[accounts]") {
  sink.wants_count = GENERATE(false, true);
  Learn();
  CHECK(IsOnAccount(Key(kStream)));
  TestClock::Pass(kCountNs - 20'000);  // a reading of the clock takes time as well
  CHECK(IsOnAccount(Key(kStream)));
  TestClock::Pass(20'000);
  const std::uint64_t before = sink.submitted;
  CHECK(IsOnAccount(Key(kStream)) == !sink.wants_count);
  CHECK(sink.submitted == before + (sink.wants_count ? 3 : 0));
  CHECK(IsOnAccount(Key(kStream)));  // until it is old again
}

TEST_CASE_METHOD(Accounts, "a wait is reported with all launches before it", "[accounts]") {
  sink.wants_waits = GENERATE(false, true);
  Learn();
  int event = 0;
  tracker.EventRecorded(&event, Key(kStream));
  const std::uint64_t before = sink.submitted;
  for (int i = 0; i < 10; ++i)
    CHECK(IsOnAccount(Key(kStream)));
  CHECK(sink.submitted == before);
  const Snapshot waiting = tracker.BeginEventSync(&event);
  CHECK(sink.submitted == before + (sink.wants_waits ? 10 : 0));
  tracker.EndSync(waiting, true);
}

TEST_CASE_METHOD(Accounts, "the dozens of kinds that an eager program launches by turns fit into an account",
                 "[accounts]") {
  std::mt19937_64 random(1);
  std::array<LaunchKey, 40> kinds{};
  for (LaunchKey& kind : kinds)
    LearnCost(Key(kStream), kind = random());
  const auto on_account = [&] {
    return std::count_if(kinds.begin(), kinds.end(),
                         [&](LaunchKey kind) { return IsOnAccount(Key(kStream), kNoWindow, kind); });
  };
  on_account();  // the first of each goes by the device
  CHECK(on_account() >= 36);
  // Costs that have changed count from the next grant on.
  LearnCost(Key(kStream), random());
  on_account();
  CHECK(on_account() >= 36);
}

TEST_CASE_METHOD(Accounts, "what is not as most launches are goes to the device", "[accounts]") {
  struct Case {
    const char* what;
    std::function<bool(Accounts*)> is_on_account;
    bool expected = false;
  };
  const StreamKey stream = Key(kStream);
  const auto timed = [&](Accounts* device, LaunchKey function, bool may_time) {
    const std::uint64_t before = device->sink.submitted;
    DeviceLaunch launch(&device->tracker, stream, kKind, function);
    CHECK(launch.Begin(kWindow, may_time, MonotonicNs()));
    if (launch.StopMarker() != nullptr) device->vendor.LaunchTimed(launch.StopMarker(), stream.handle);
    launch.Leave(true, false);
    return device->sink.submitted == before;
  };
  const std::array cases{
      Case{"as most", [&](Accounts* device) { return device->IsOnAccount(stream); }, true},
      Case{"another kind", [&](Accounts* device) { return device->IsOnAccount(stream, kWindow, kNewKind); }},
      Case{"no kind", [&](Accounts* device) { return device->IsOnAccount(stream, kWindow, 0); }},
      Case{"another window",
           [&](Accounts* device) {
             return device->IsOnAccount(stream, Window{3'000, 8});
           }},
      Case{"a guarded one",
           [&](Accounts* device) {
             return device->IsOnAccount(stream, Window{2'000, 8, true});
           }},
      Case{"another stream", [&](Accounts* device) { return device->IsOnAccount(Key(kOther)); }},
      Case{"another function", [&](Accounts* device) { return timed(device, 7, false); }},
      Case{"one that may be timed, and should", [&](Accounts* device) { return timed(device, 0, true); }},
      Case{"a capture",
           [&](Accounts* device) {
             device->captures.Begin(nullptr);
             return device->IsOnAccount(stream);
           }},
      Case{"a deadline",
           [&](Accounts* device) {
             device->deadlines.Set(1'000);
             device->tracker.DeadlinesChanged();
             return device->IsOnAccount(stream);
           }},
      Case{"the host ahead",
           [&](Accounts* device) {
             device->tracker.NoteHostAhead();
             return device->IsOnAccount(stream);
           }},
      Case{"an old marker",
           [&](Accounts* device) {
             TestClock::Pass(kMarkerAgeNs);
             return device->IsOnAccount(stream);
           }},
      Case{"an idle stream",
           [&](Accounts* device) {
             device->Sync(SyncScope::kDevice, StreamKey{});
             return device->IsOnAccount(stream);
           }},
      Case{"another launch under way there",
           [&](Accounts* device) {
             Entered other(&device->tracker, stream, kKind);
             CHECK(other.Admit(kWindow, false));
             return device->IsOnAccount(stream);
           }},
      Case{"another session",
           [&](Accounts* device) {
             device->tracker.Reset(&device->sink);
             return device->IsOnAccount(stream);
           }},
      Case{"the stream destroyed, and another made under its name",
           [&](Accounts* device) {
             device->tracker.ForgetStream(stream.handle);
             return device->IsOnAccount(stream);
           }},
      Case{"the device reset",
           [&](Accounts* device) {
             device->tracker.ForgetDevice();
             return device->IsOnAccount(stream);
           }},
  };
  const std::size_t number = GENERATE(range(0, 17));
  REQUIRE(cases.size() == 17);
  CAPTURE(cases[number].what);
  Learn();
  REQUIRE(IsOnAccount(stream));
  CHECK(cases[number].is_on_account(this) == cases[number].expected);
}

TEST_CASE_METHOD(Accounts, "where nobody else may mark a stream its launches go to the device", "[accounts]") {
  // The legacy default stream, from the moment that a blocking stream is made.
  Learn(StreamKey{});
  CHECK(IsOnAccount(StreamKey{}));
  tracker.NoteStream(Key(kOther).handle, false);
  CHECK_FALSE(IsOnAccount(StreamKey{}));
  CHECK_FALSE(IsOnAccount(StreamKey{}));
  // That of a thread.
  const StreamKey of_thread{reinterpret_cast<void*>(kPerThreadHandle), 7};
  for (int i = 0; i < 3; ++i)
    CHECK_FALSE(IsOnAccount(of_thread));
}

TEST_CASE_METHOD(Accounts, "the window is not exceeded by what is counted in accounts", "[accounts]") {
  Learn();
  Learn(Key(kOther));
  std::uint64_t launches = 0;
  while (Launch(Key(kStream)) && Launch(Key(kOther)))
    REQUIRE(++launches < 10'000);
  CHECK(tracker.InFlightNs() <= 2 * kWindowNs);  // beside the stream with the most: admission.h
  CHECK(tracker.InFlightNs() > kWindowNs - 2 * kCostNs);
}

TEST_CASE_METHOD(Accounts, "a launch whose account is taken back under way leaves by the device", "[accounts]") {
  const bool ok = GENERATE(false, true);
  const bool is_forgotten = GENERATE(false, true);
  Learn();
  REQUIRE(IsOnAccount(Key(kStream)));
  tracker.InFlightNs();
  const std::uint64_t before = sink.submitted;
  {
    DeviceLaunch launch(&tracker, Key(kStream), kKind);
    REQUIRE(launch.Begin(kWindow, false, MonotonicNs()));
    is_forgotten ? tracker.ForgetStream(Key(kStream).handle) : Sync(SyncScope::kDevice, StreamKey{});
    CHECK(tracker.IsBusy());  // with this one
    CHECK(sink.submitted == before);
    if (ok) launch.Leave(true, false);
  }
  CHECK(sink.submitted == before + (ok ? 1 : 0));
  CHECK(tracker.IsBusy() == ok);
  Sync(SyncScope::kDevice, StreamKey{});
  CHECK_FALSE(tracker.IsBusy());
  CHECK(sink.completed == sink.submitted);
  CHECK(tracker.InFlightNs() == 0);
}

TEST_CASE_METHOD(Accounts, "a synchronisation covers what left its account before it began", "[accounts]") {
  const SyncScope scope = GENERATE(SyncScope::kDevice, SyncScope::kStream);
  Learn();
  REQUIRE(IsOnAccount(Key(kStream)));
  const Snapshot snapshot = tracker.BeginSync(scope, Key(kStream));
  REQUIRE(Launch(Key(kStream)));
  REQUIRE(IsOnAccount(Key(kStream)));
  tracker.EndSync(snapshot, true);
  CHECK(sink.in_flight == 2);
}

TEST_CASE_METHOD(Accounts, "the agent notices the end of what was counted in an account", "[accounts]") {
  Learn();
  REQUIRE(IsOnAccount(Key(kStream)));
  CHECK(tracker.Tick(MonotonicNs()) != DeviceTracker::kNever);
  CHECK(sink.in_flight == 2);
  TestClock::Pass(1'000'000);
  tracker.Tick(MonotonicNs());  // records a marker
  vendor.Finish(Key(kStream).handle, device_ns += kCostNs);
  TestClock::Pass(1'000'000);
  CHECK(tracker.Tick(MonotonicNs()) == DeviceTracker::kNever);
  CHECK_FALSE(tracker.IsBusy());
}

// ---- with and without accounts

namespace {

constexpr std::array<std::uintptr_t, 4> kStreams{16, 32, 48, 64};

// What a program might do, by chance, and what can be seen after each step.
struct Chance : Accounts {
  std::mt19937 random;
  std::size_t on_account = 0;
  unsigned window = 0;
  std::vector<std::string> seen;

  explicit Chance(unsigned seed) : random(seed) {
    for (LaunchKey kind = 101; kind < 104; ++kind)
      LearnCost(Key(kOther), kind);
  }
  unsigned Under(unsigned limit) { return static_cast<unsigned>(random() % limit); }
  StreamKey AnyStream() { return Key(kStreams[Under(kStreams.size())]); }
  void FinishAll() {
    device_ns += 10'000'000;  // as long as all that is in flight could take
    for (const std::uintptr_t stream : kStreams)
      vendor.Finish(Key(stream).handle, device_ns);
  }
  void AnyLaunch() {
    static constexpr std::array<Window, 3> kWindows{Window{2'000, 8}, Window{300, 1}, Window{}};
    if (Under(200) == 0) window = Under(kWindows.size());
    const std::uint64_t before = sink.submitted;
    const bool ok = Under(30) != 0;
    const bool is_begun = Launch(AnyStream(), kWindows[window], 101 + Under(3), ok);
    on_account += is_begun && ok && sink.submitted == before ? 1 : 0;
    seen.push_back(is_begun ? "launched" : "no room");
  }
  void Step() {
    TestClock::Pass(Under(20'000));
    switch (Under(40)) {
      case 0:
        FinishAll();
        tracker.Poll();
        break;
      case 1: {
        const Snapshot snapshot =
            tracker.BeginSync(Under(2) == 0 ? SyncScope::kDevice : SyncScope::kStream, AnyStream());
        FinishAll();
        if (Under(3) == 0) AnyLaunch();
        tracker.EndSync(snapshot, true);
        break;
      }
      case 2:
        seen.push_back(std::to_string(tracker.Tick(MonotonicNs(), Under(2) == 0)));
        break;
      case 3:
        tracker.EventRecorded(this, AnyStream());
        break;
      case 4: {
        const Snapshot snapshot = tracker.BeginEventSync(this);
        if (snapshot.epoch != 0) tracker.EndSync(snapshot, true);
        break;
      }
      case 5:
        if (Under(10) == 0) tracker.ForgetStream(AnyStream().handle);
        break;
      case 6:
        for (const Activity& activity : tracker.TakeActivity())
          seen.push_back(std::to_string(activity.launches) + "/" + std::to_string(activity.completions));
        break;
      case 7:
        if (Under(10) == 0) {
          tracker.PrepareForCapture();
          captures.Begin(nullptr);
          AnyLaunch();
          captures.End(nullptr);
        }
        break;
      case 8:
        seen.push_back(tracker.IsBehindOwnMarker(AnyStream()) ? "ours" : "not ours");
        break;
      case 9:
        if (Under(20) == 0) tracker.NoteHostAhead();
        break;
      case 10:
        if (Under(50) == 0) tracker.Reset(&sink);
        break;
      default:
        AnyLaunch();
    }
    if (Under(8) != 0) return;  // nearly always there is more than one launch in the accounts
    const std::uint64_t in_flight_ns = tracker.InFlightNs();
    seen.push_back(std::to_string(in_flight_ns) + " ns of " + std::to_string(sink.in_flight) + ", " +
                   std::to_string(sink.submitted) + " submitted, " + std::to_string(sink.completed) + " completed, " +
                   std::to_string(sink.gpu_time_ns) + " ns, " + std::to_string(vendor.Recorded()) + " markers, " +
                   std::to_string(sink.reports.size()) + " reports");
  }
};

std::vector<std::string> Seen(unsigned seed, bool has_accounts, std::size_t* on_account) {
  Chance device(seed);
  if (!has_accounts) device.deadlines.SetStream(Key(80).handle, 1'000);  // of nobody here; nothing goes on account
  for (int i = 0; i < 1500; ++i)
    device.Step();
  *on_account = device.on_account;
  return device.seen;
}

}  // namespace

TEST_CASE("with accounts everything that can be seen is as without", "[accounts]") {
  const unsigned seed = GENERATE(range(0u, 40u));
  CAPTURE(seed);
  std::size_t with = 0, without = 0;
  const std::vector<std::string> seen = Seen(seed, true, &with);
  const std::vector<std::string> expected = Seen(seed, false, &without);
  const auto differs = std::mismatch(seen.begin(), seen.end(), expected.begin(), expected.end());
  if (differs.first != seen.end()) {
    CAPTURE(differs.first - seen.begin(), *differs.first, *differs.second);
    FAIL();
  }
  CHECK(with > 100);  // of some 1000 launches
  CHECK(without == 0);
}

// ---- threads

TEST_CASE("threads launch on streams of their own and on one together while others look", "[accounts]") {
  constexpr unsigned kThreads = 4, kLaunches = 4000;
  FakeVendor fake;
  Vendor vendor = *fake.Table();
  static int marker;  // nothing is written to it
  vendor.create_marker = [](int) -> void* { return &marker; };
  vendor.record_marker = [](int, void*, void*) { return true; };
  vendor.query_marker = [](void*) { return MarkerState::kDone; };
  vendor.elapsed_ns = [](void*, void*, std::int64_t* out) { return (*out = 1'000) != 0; };
  vendor.next_stamp = [](std::uint64_t*, Stamp*) { return false; };
  vendor.exchange_capture_mode = [](int mode) { return mode; };
  Captures captures;
  Deadlines deadlines;
  Sink sink;
  DeviceTracker tracker(0, &vendor, &captures, &deadlines);
  tracker.Reset(&sink);
  std::atomic<unsigned> running{kThreads};
  std::atomic<std::uint64_t> succeeded{0};
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      const StreamKey own = Key(16 + number * 16), together = Key(8);
      for (unsigned i = 0; i < kLaunches; ++i) {
        const StreamKey& stream = i % 8 == 7 ? together : own;
        const bool ok = i % 50 != 0;
        DeviceLaunch launch(&tracker, stream, 1 + i % 3);
        bool is_in = launch.Begin(Window{20'000, 4}, false, MonotonicNs());
        while (!is_in) {
          launch.AwaitRoom();
          is_in = launch.Admit(Window{20'000, 4}, false);
          if (is_in) launch.Start(false);
        }
        launch.Leave(ok, false);
        succeeded += ok ? 1 : 0;
        if (i % 64 == 63) tracker.EndSync(tracker.BeginSync(SyncScope::kStream, own), true);
        if (i % 1000 == 999) tracker.ForgetStream(own.handle);
      }
      --running;
    });
  }
  while (running > 0) {
    tracker.Tick(MonotonicNs());
    tracker.TakeActivity();
    tracker.InFlightNs();
  }
  for (std::thread& thread : threads)
    thread.join();
  tracker.EndSync(tracker.BeginSync(SyncScope::kDevice, StreamKey{}), true);
  CHECK(sink.submitted == succeeded);
  CHECK(sink.completed == succeeded);
  CHECK(sink.in_flight == 0);
  CHECK(tracker.InFlightNs() == 0);
  CHECK_FALSE(tracker.IsBusy());
}
