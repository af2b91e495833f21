// Start markers: when a stream that becomes busy gets one, and what is known without one.
#include <algorithm>

#include "tests/catch.h"
#include "tests/unit/shim/tracker_fixture.h"

using namespace xschedd::shim;

namespace {
constexpr LaunchKey kKnown = 101, kUnknown = 202;
constexpr std::uint64_t kCostNs = 10'000;

struct Starts : Fixture {
  void* const stream = reinterpret_cast<void*>(16);
  std::uint64_t now = 1'000'000;

  // Begins to launch on the idle stream; whether that recorded a start marker, which the device is at right away.
  bool Begin(LaunchKey kind) {
    const std::size_t before = vendor.Recorded();
    TryLaunch(Key(16), kNoWindow, true, kind);
    vendor.Finish(stream, now);
    return vendor.Recorded() != before;
  }
  // Waits for what is launched, which the device takes so long for.
  void End(std::uint64_t takes_ns) {
    const Snapshot snapshot = tracker.BeginSync(SyncScope::kStream, Key(16));
    vendor.Finish(stream, now += takes_ns);
    tracker.EndSync(snapshot, true);
    now += 1'000'000;
  }
  void Learn(LaunchKey kind) {
    REQUIRE(Begin(kind));
    End(kCostNs);
  }
  // One that has no start marker: of known cost, one in eight has one.
  void BeginWithout(LaunchKey kind) {
    for (int i = 0; i < 8; ++i) {
      if (!Begin(kind)) return;
      End(kCostNs);
    }
    FAIL("each has a start marker");
  }
};
}  // namespace

TEST_CASE_METHOD(Starts, "work of known cost has no marker in front of it, but now and then", "[starts]") {
  Learn(kKnown);
  unsigned without = 0, most = 0, in_a_row = 0;
  for (int i = 0; i < 100; ++i) {
    const bool is_marked = Begin(kKnown);
    End(kCostNs);
    in_a_row = is_marked ? 0 : in_a_row + 1;
    without += is_marked ? 0 : 1;
    most = std::max(most, in_a_row);
  }
  CHECK(without == 88);
  CHECK(most == 7);
  CHECK(sink.gpu_time_ns == 101 * kCostNs);
}

TEST_CASE_METHOD(Starts, "work of unknown cost has a marker in front of it, every time", "[starts]") {
  for (int i = 0; i < 20; ++i) {
    CHECK(Begin(0));
    End(kCostNs);
  }
}

TEST_CASE_METHOD(Starts, "without a start marker work counts as long as it costs, however long it waited", "[starts]") {
  Learn(kKnown);
  BeginWithout(kKnown);
  const std::uint64_t before = sink.gpu_time_ns;
  TryLaunch(Key(16), kNoWindow, true, kKnown);
  End(7 * kCostNs);
  CHECK(sink.gpu_time_ns - before == 2 * kCostNs);
}

TEST_CASE_METHOD(Starts, "what is not known has a marker in front of it behind work that is", "[starts]") {
  Learn(kKnown);
  BeginWithout(kKnown);
  const std::uint64_t before = sink.gpu_time_ns;
  const std::size_t records = vendor.Recorded();
  Entered launch(&tracker, Key(16), kUnknown);
  REQUIRE(launch.Admit(kNoWindow, false));
  launch.Start(false);
  CHECK(vendor.Recorded() == records + 1);
  vendor.Finish(stream, now += kCostNs);
  launch.Leave(true, false);
  TryLaunch(Key(16), kNoWindow, true, kUnknown);  // behind that marker, too
  CHECK(vendor.Recorded() == records + 1);
  End(6 * kCostNs);
  CHECK(sink.gpu_time_ns - before == 7 * kCostNs);
  // And so it has become known.
  BeginWithout(kUnknown);
  const std::uint64_t then = sink.gpu_time_ns;
  End(kCostNs);
  CHECK(sink.gpu_time_ns - then == 3 * kCostNs);
}

TEST_CASE_METHOD(Starts, "of many known kinds each counts, with a marker behind them or without", "[starts]") {
  constexpr LaunchKey kKinds = 20;
  for (LaunchKey kind = 1; kind <= kKinds; ++kind)
    Learn(kind);
  for (const bool is_marked : {true, false}) {
    BeginWithout(1);
    const std::uint64_t before = sink.gpu_time_ns;
    for (LaunchKey kind = 2; kind <= kKinds; ++kind)
      TryLaunch(Key(16), kNoWindow, true, kind);
    vendor.refuses_to_record = !is_marked;
    End(3 * kKinds * kCostNs);
    vendor.refuses_to_record = false;
    CHECK(sink.gpu_time_ns - before >= (kKinds - 1) * kCostNs);
    CHECK(sink.gpu_time_ns - before <= kKinds * kCostNs);
  }
}
