// Unions, costs and stamps: the arithmetic of GPU time.
#include <vector>

#include "client-shim/core/cost_table.h"
#include "client-shim/core/gpu_time.h"
#include "client-shim/core/interval_union.h"
#include "client-shim/core/launch_timer.h"
#include "client-shim/core/ring_queue.h"
#include "fake_vendor.h"
#include "tests/catch.h"

using namespace xschedd::shim;

TEST_CASE("a union counts each moment once, in whatever order", "[union]") {
  IntervalUnion covered;
  CHECK(covered.Add(100, 200) == 100);
  CHECK(covered.Add(150, 250) == 50);
  CHECK(covered.Add(400, 500) == 100);
  CHECK(covered.Add(50, 100) == 50);  // touches
  CHECK(covered.Add(60, 240) == 0);   // inside
  CHECK(covered.Add(0, 600) == 600 - 200 - 100);
  CHECK(covered.Add(300, 300) == 0);
  CHECK(covered.Add(500, 400) == 0);
}

TEST_CASE("a union agrees with counting every moment, as long as it remembers", "[union]") {
  std::uint64_t seed = 12345;
  const auto random = [&](std::uint64_t below) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (seed >> 33) % below;
  };
  for (int round = 0; round < 50; ++round) {
    IntervalUnion covered;
    std::vector<bool> moments(2000);
    for (int i = 0; i < 30; ++i) {  // fewer than it can hold apart
      const std::uint64_t start = random(1900);
      const std::uint64_t end = start + random(100);
      std::uint64_t fresh = 0;
      for (std::uint64_t at = start; at < end; ++at) {
        fresh += moments[at] ? 0 : 1;
        moments[at] = true;
      }
      REQUIRE(covered.Add(start, end) == fresh);
    }
  }
}

TEST_CASE("a union that is full gives up the oldest stretches and never counts twice", "[union]") {
  IntervalUnion covered;
  for (std::uint64_t i = 0; i < 3 * IntervalUnion::kStretches; ++i)
    CHECK(covered.Add(100 * i, 100 * i + 50) == 50);
  CHECK(covered.Add(0, 50) == 0);  // long forgotten: counts as covered
  CHECK(covered.Add(100 * (IntervalUnion::kStretches * 3 - 1), IntervalUnion::kStretches * 300) == 50);
}

TEST_CASE("the smaller of spans and costs counts", "[gpu time]") {
  SECTION("streams that overlap: the union") {
    GpuTime time;
    for (std::uint64_t i = 0; i < 100; ++i) {
      time.Add(i * 1000, i * 1000 + 1000, 2, 900);
      time.Add(i * 1000, i * 1000 + 1000, 2, 900);
      time.EndRound();
    }
    CHECK(time.TotalNs() == 100'000);
  }
  SECTION("waiting for others: the costs") {
    GpuTime time;
    for (std::uint64_t i = 0; i < 100; ++i)
      time.Add(i * 1000, i * 1000 + 1000, 2, 300);
    CHECK(time.TotalNs() == 30'000);
  }
  SECTION("a launch with a marker of its own is as long as it costs, and ends where its marker is") {
    GpuTime time;
    time.Add(0, 1000, 1, 200);     // 800..1000
    time.Add(0, 1100, 1, 200);     // 900..1100
    time.Add(1100, 1200, 1, 500);  // no longer than its span
    CHECK(time.TotalNs() == 400);
  }
  SECTION("cost unknown: the span") {
    GpuTime time;
    time.Add(0, 1000, 5, 0);
    time.AddUnmeasured(50);
    CHECK(time.TotalNs() == 1050);
  }
}

TEST_CASE("a time of overlap is not weighed against a time of waiting for ever", "[gpu time]") {
  GpuTime time;
  std::uint64_t last = 0;
  const auto check_monotone = [&] {
    CHECK(time.TotalNs() >= last);
    last = time.TotalNs();
  };
  // One second of four streams side by side, then one of waiting for others three quarters of the time.
  for (std::uint64_t ms = 0; ms < 1000; ++ms) {
    for (int stream = 0; stream < 4; ++stream)
      time.Add(ms * 1'000'000, (ms + 1) * 1'000'000, 10, 1'000'000);
    time.EndRound();
    check_monotone();
  }
  for (std::uint64_t ms = 1000; ms < 2000; ++ms) {
    time.Add(ms * 1'000'000, (ms + 1) * 1'000'000, 10, 250'000);
    time.EndRound();
    check_monotone();
  }
  CHECK(time.TotalNs() > 1'225'000'000);
  CHECK(time.TotalNs() < 1'275'000'000);
}

namespace {
LaunchMix Mix(LaunchKey key, std::uint32_t launches) {
  LaunchMix mix;
  mix.Add(key, launches);
  return mix;
}
}  // namespace

TEST_CASE("a cost from spans is the least of them, until they agree on more", "[cost]") {
  CostTable costs;
  constexpr std::uint64_t kMs = 1'000'000;
  std::uint64_t now = 77 * kMs;
  // A batch of four launches every 5 ms for `ms`: `each_us` a launch, and every other one `more_us` longer.
  const auto add = [&](std::uint64_t ms, std::uint64_t each_us, std::uint64_t more_us = 0) {
    for (const std::uint64_t end = now + ms * kMs; now < end; now += 10 * kMs) {
      costs.AddSpan(Mix(1, 4), 4'000 * each_us, now);
      costs.AddSpan(Mix(1, 4), 4'000 * (each_us + more_us), now + 5 * kMs);
    }
  };
  costs.AddSpan(Mix(1, 4), 1'600'000, now);
  CHECK(costs.CostNs(1) == 400'000);
  costs.AddSpan(Mix(1, 4), 400'000, now);
  CHECK(costs.CostNs(1) == 100'000);  // alone for a moment
  SECTION("spans that scatter are waiting: forgotten only after half a minute") {
    add(25'000, 200, 200);
    CHECK(costs.CostNs(1) == 100'000);
    add(10'000, 200, 200);
    CHECK(costs.CostNs(1) == 200'000);
    add(100, 150, 300);
    CHECK(costs.CostNs(1) == 150'000);
  }
  SECTION("a moment alone from time to time is enough") {
    for (int i = 0; i < 10; ++i) {
      add(20'000, 200, 200);
      costs.AddSpan(Mix(1, 4), 400'000 + 4'000 * i, now);
      CHECK(costs.CostNs(1) <= 100'000u + 1'000u * static_cast<unsigned>(i));
    }
    CHECK(costs.CostNs(1) > 107'000);  // and a slow change is followed
  }
  SECTION("spans that agree are a change") {
    add(1'500, 300, 10);
    CHECK(costs.CostNs(1) == 100'000);
    add(3'000, 300, 10);
    CHECK(costs.CostNs(1) == 300'000);
    add(10, 90);
    CHECK(costs.CostNs(1) == 90'000);
  }
  SECTION("a pause forgets nothing") {
    now += 3'600'000 * kMs;
    add(50, 300);
    CHECK(costs.CostNs(1) == 100'000);
  }
  CHECK(costs.CostNs(2) == 0);
}

TEST_CASE("what is known of a mix tells what is not", "[cost]") {
  CostTable costs;
  costs.AddSpan(Mix(1, 1), 100'000, 1);
  LaunchMix mix = Mix(1, 2);
  mix.Add(2, 4);
  costs.AddSpan(mix, 1'000'000, 2);
  CHECK(costs.CostNs(1) == 100'000);
  CHECK(costs.CostNs(2) == 200'000);
  // Of more kinds than a mix tells apart nothing is learnt.
  LaunchMix many;
  for (LaunchKey key = 10; key < 20; ++key)
    many.Add(key);
  CHECK_FALSE(many.is_complete);
  costs.AddSpan(many, 1'000'000, 3);
  CHECK(costs.CostNs(10) == 0);
}

TEST_CASE("a time stamp goes before spans, and a kind that changes is followed within a few launches", "[cost]") {
  CostTable costs;
  costs.AddSpan(Mix(1, 1), 900'000, 1);        // waited for others
  CHECK_FALSE(costs.IsTimingDue(1, 0, true));  // never launched with success
  costs.Launched(1);
  std::uint64_t now = 1'000'000'000;
  REQUIRE(costs.IsTimingDue(1, now, false));
  costs.ChosenForTiming(1, now);
  CHECK(costs.SettledCostNs(1) == 0);  // not to be relied on until two stamps agree
  costs.AddTimed(1, 100'000);
  costs.AddTimed(1, 102'000);
  CHECK(costs.SettledCostNs(1) > 100'000);
  CHECK(costs.SettledCostNs(1) < 102'000);
  costs.AddSpan(Mix(1, 1), 900'000, 2);
  CHECK(costs.CostNs(1) < 102'000);
  for (int i = 0; i < 2; ++i)
    costs.AddTimed(1, 5'000);
  CHECK(costs.CostNs(1) == 5'000);
  CHECK(costs.SettledCostNs(1) == 0);
  CHECK(costs.TakeJump());
  CHECK_FALSE(costs.TakeJump());
}

TEST_CASE("a kind is timed at its start, where a marker is due, and where spans say that it has changed", "[cost]") {
  CostTable costs;
  std::uint64_t now = 1'000'000'000;
  for (int i = 0; i < 3; ++i) {
    costs.Launched(1);
    REQUIRE(costs.IsTimingDue(1, now, false));
    costs.ChosenForTiming(1, now);
    costs.AddTimed(1, 100'000);
  }
  costs.Launched(1);
  CHECK_FALSE(costs.IsTimingDue(1, now + 1'000'000, true));
  now += 10'000'000;
  CHECK(costs.IsTimingDue(1, now, true));
  CHECK_FALSE(costs.IsTimingDue(1, now, false));
  costs.ChosenForTiming(1, now);
  costs.AddTimed(1, 500'000);  // far off
  costs.AddSpan(Mix(1, 1), 1'000'000, now);
  CHECK_FALSE(costs.IsTimingDue(1, now, false));
  for (int i = 0; i < 3; ++i)
    costs.Launched(1);
  CHECK(costs.IsTimingDue(1, now, false));
}

TEST_CASE("a table that is full forgets what was launched longest ago", "[cost]") {
  CostTable costs;
  for (LaunchKey key = 1; key <= 5000; ++key) {
    costs.Launched(key);
    costs.AddSpan(Mix(key, 1), 1000 + key, key);
    costs.Launched(1);
  }
  CHECK(costs.CostNs(1) == 1001);
  CHECK(costs.CostNs(5000) == 6000);
  CHECK(costs.CostNs(2) == 0);
}

namespace {
struct Timer {
  FakeVendor vendor;
  LaunchTimer timer;
  std::vector<std::pair<LaunchKey, std::uint64_t>> found;
  std::uint64_t Match() {
    return timer.Match(*vendor.Table(), [this](LaunchKey key, std::uint64_t ns) { found.emplace_back(key, ns); });
  }
};
constexpr std::uint64_t kOffset = 77'000'000'000'123;
}  // namespace

TEST_CASE_METHOD(Timer, "stamps are told apart by their ends, whatever else was timed", "[timer]") {
  // Two of ours among others', the markers a little after the kernels.
  vendor.stamps = {{kOffset + 10'000, kOffset + 30'000},
                   {kOffset + 40'000, kOffset + 140'000},
                   {kOffset + 200'000, kOffset + 290'000},
                   {kOffset + 300'000, kOffset + 350'000}};
  timer.Expect(1, 140'500, 200'000);
  CHECK(Match() == 0);  // one alone could be any
  timer.Expect(2, 350'400, 200'000);
  CHECK(Match() == 50'000);
  CHECK(found == std::vector<std::pair<LaunchKey, std::uint64_t>>{{1, 100'000}, {2, 50'000}});
  // From here on each is known at once; one that comes late is waited for.
  timer.Expect(1, 900'500, 200'000);
  CHECK(Match() == 0);
  vendor.stamps.push_back({kOffset + 800'000, kOffset + 900'000});
  CHECK(Match() == 100'000);
}

TEST_CASE_METHOD(Timer, "a stamp longer than the span around it is nonsense", "[timer]") {
  for (std::uint64_t i = 1; i <= 2; ++i) {
    vendor.stamps.push_back({kOffset + i * 1'000'000 - 100'000, kOffset + i * 1'000'000});
    timer.Expect(1, i * 1'000'000, 200'000);
  }
  Match();
  found.clear();
  vendor.stamps.push_back({kOffset + 2'000'000, kOffset + 3'000'000});
  timer.Expect(1, 3'000'000, 300'000);
  CHECK(Match() == 0);
  CHECK(found.empty());
}

TEST_CASE_METHOD(Timer, "where no stamps come, the timer gives itself up", "[timer]") {
  for (std::uint64_t i = 0; i < 200; ++i) {
    timer.Expect(1, i * 1'000'000, 500'000);
    Match();
  }
  CHECK_FALSE(timer.IsUsable());
  CHECK(found.empty());
}

TEST_CASE("a ring queue keeps its order while it wraps and grows", "[ring]") {
  RingQueue<int> queue;
  int in = 0, out = 0;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < round % 13; ++i)
      queue.Push(in++);
    while (queue.Size() > static_cast<std::size_t>(round % 5))
      CHECK(queue.Pop() == out++);
  }
  CHECK(queue.Size() == static_cast<std::size_t>(in - out));
}
