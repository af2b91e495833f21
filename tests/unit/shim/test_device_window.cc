// What of a client is in flight under a window, on a device that takes known times.
#include <algorithm>
#include <map>

#include "tests/catch.h"
#include "tests/unit/shim/tracker_fixture.h"

using namespace xschedd::shim;

// ---- a window in time

namespace {
constexpr LaunchKey kShort = 101, kLong = 102, kNew = 103;

// A device that works off what is launched, one launch after the other, each as long as its kind takes. Time passes
// only while somebody waits for it.
struct Device : Fixture {
  static constexpr std::uintptr_t kStream = 16;
  std::map<LaunchKey, std::uint64_t> takes{{kShort, 5'000}, {kLong, 50'000'000}, {kNew, 300'000}};
  std::uint64_t now = 1'000'000'000;
  bool may_time = true;
  std::uint64_t free_at = 0;                           // when the device has done all that is queued
  std::vector<std::pair<std::uint64_t, void*>> marks;  // when each marker will be reached

  std::uint64_t QueuedNs() const { return free_at > now ? free_at - now : 0; }
  void CollectMarkers() {
    for (void* marker : vendor.TakeRecorded())
      marks.emplace_back(std::max(free_at, now), marker);
  }
  void WaitUntil(std::uint64_t time) {
    now = std::max(now, time);
    while (!marks.empty() && marks.front().first <= now) {
      vendor.FinishMarker(marks.front().second, marks.front().first);
      marks.erase(marks.begin());
    }
  }
  // Returns how much of the device's time was queued before the launch was let in.
  std::uint64_t Launch(LaunchKey kind, const Window& window, LaunchKey function = 0) {
    Entered launch(&tracker, Key(kStream), kind, function);
    while (!launch.Admit(window, false)) {
      tracker.PollForRoom(0);
      CollectMarkers();
      if (launch.Admit(window, false)) break;
      REQUIRE_FALSE(marks.empty());
      WaitUntil(marks.front().first);
    }
    const std::uint64_t before = QueuedNs();
    launch.Start(may_time);
    CollectMarkers();
    free_at = std::max(free_at, now) + takes[kind];
    if (launch.StopMarker() != nullptr) {
      vendor.LaunchTimed(launch.StopMarker(), Key(kStream).handle);
      vendor.stamps.push_back({free_at - takes[kind] + 4'711, free_at + 4'711});
    }
    launch.Leave(true, false);
    CollectMarkers();
    return before;
  }
};
}  // namespace

TEST_CASE_METHOD(Device, "5 us kernels fill the window, and no more of it is in flight", "[window]") {
  const Window window{500, 2};
  std::uint64_t most = 0;
  for (int i = 0; i < 5000; ++i) {
    Launch(kShort, window);
    most = std::max(most, QueuedNs());
  }
  CHECK(most <= 510'000);
  CHECK(most >= 400'000);
}

TEST_CASE_METHOD(Device, "of 50 ms kernels only the floor is in flight", "[window]") {
  const Window window{500, 1};
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t before = Launch(kLong, window);
    if (i > 0) CHECK(before == 0);
  }
}

TEST_CASE_METHOD(Device, "a mix of known kinds is weighed by what each takes", "[window]") {
  const Window window{500, 1};
  for (int i = 0; i < 200; ++i)
    Launch(kShort, window);
  Launch(kLong, window);
  for (int i = 0; i < 400; ++i) {
    const bool is_long = i % 50 == 49;
    const std::uint64_t before = Launch(is_long ? kLong : kShort, window);
    // A long one is let in only where nothing is in flight; behind one nothing is.
    if (is_long) CHECK(before == 0);
    CHECK(before <= 500'000);
  }
}

TEST_CASE_METHOD(Device, "a kind that has become longer is known within ten launches", "[window]") {
  const Window window{500, 1};
  for (int i = 0; i < 500; ++i)
    Launch(kNew, window);
  takes[kNew] = 3'000;
  for (int i = 0; i < 100; ++i)
    Launch(kNew, window);
  CHECK(QueuedNs() > 100'000);  // it has become shorter: more of them are in flight
  takes[kNew] = 400'000;
  // What was let in as short is in flight; from the tenth behind it, at most the window and one.
  std::uint64_t launches = 0;
  while (QueuedNs() > 900'000 || launches < 10) {
    Launch(kNew, window);
    ++launches;
    REQUIRE(launches < 400);
  }
  for (int i = 0; i < 50; ++i) {
    Launch(kNew, window);
    CHECK(QueuedNs() <= 900'000);
  }
}

TEST_CASE_METHOD(Device, "grids that were never seen before do not drain the pipeline", "[window]") {
  constexpr LaunchKey kFunction = 7;
  const Window window{500, 2};
  for (const LaunchKey first : {1000, 2000}) {
    may_time = first == 1000;
    for (int i = 0; i < 100; ++i)
      Launch(kShort, window, kFunction);
    std::uint64_t queued_ns = 0;
    for (LaunchKey grid = first; grid < first + 200; ++grid) {
      takes[grid] = 20'000;
      queued_ns += Launch(grid, window, kFunction);
      CHECK(QueuedNs() <= 2'600'000);  // as long as they are taken for as short as the grid before them
    }
    CHECK(queued_ns / 200 > 200'000);
    CHECK(QueuedNs() <= 600'000);
  }
}

TEST_CASE_METHOD(Device, "a function never seen before is taken for the average, once that has proved right",
                 "[window]") {
  const Window window{500, 2};
  for (int i = 0; i < 100; ++i)
    Launch(kShort, window);
  std::uint64_t queued_ns = 0;
  for (LaunchKey kind = 1000; kind < 1100; ++kind) {
    takes[kind] = 10'000;
    queued_ns += Launch(kind, window, kind + 1'000'000);
    if (kind == 1000) CHECK(queued_ns <= 10'000);  // not yet
    CHECK(QueuedNs() <= 1'100'000);
  }
  CHECK(queued_ns / 100 > 200'000);
  // The first long one shows that it is not.
  for (LaunchKey kind = 2000; kind < 2060; ++kind) {
    takes[kind] = 50'000'000;
    queued_ns = Launch(kind, window, kind + 1'000'000);
  }
  CHECK(queued_ns <= 50'000'000);
}

TEST_CASE_METHOD(Device, "a grid that takes far longer than others of its function is known by its first launch",
                 "[window]") {
  constexpr LaunchKey kFunction = 7;
  const Window window{500, 2};
  for (int i = 0; i < 100; ++i)
    Launch(kShort, window, kFunction);
  std::uint64_t queued_ns = 0;
  for (LaunchKey grid = 1000; grid < 1250; ++grid) {
    takes[grid] = 50'000'000;
    queued_ns = Launch(grid, window, kFunction);
    CHECK(QueuedNs() <= 101 * takes[grid]);  // what fitted by the cost of the others
  }
  CHECK(queued_ns <= 50'000'000);
}
