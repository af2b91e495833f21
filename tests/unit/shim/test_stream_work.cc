// What is launched on one stream, until it is settled.
#include <string>
#include <vector>

#include "client-shim/core/stream_work.h"
#include "tests/catch.h"

using namespace xschedd::shim;

namespace {
constexpr LaunchKey kKind = 7;
int g_start = 0, g_first = 0, g_second = 0, g_stop = 0;  // markers

struct Stream {
  StreamWork work;
  std::vector<SettledWork> measured;
  std::vector<std::uint64_t> unmeasured;  // by what they cost
  std::vector<TimedFrom> from;

  std::uint32_t Settle(std::uint64_t last) {
    return work
        .Settle(
            last, [this](const SettledWork& done) { measured.push_back(done); },
            [this](const InFlight& what, const LaunchMix&, TimedFrom its) {
              unmeasured.push_back(what.cost_ns);
              from.push_back(its);
            })
        .launches;
  }
};

// A letter each: l, a launch of 10 ns; c, what is open is closed; m, and there is a marker behind it; s, all that is
// closed is settled.
struct Case {
  const char* steps;
  TimedFrom from;
  std::vector<std::uint32_t> measured;    // launches
  std::vector<std::uint64_t> unmeasured;  // cost
  bool is_idle;
};
}  // namespace

TEST_CASE("work is measured by the marker behind it, else by what it costs", "[work]") {
  constexpr auto kNowhere = TimedFrom::kNowhere, kMarker = TimedFrom::kMarker, kCost = TimedFrom::kCost;
  const std::vector<Case> cases{
      {"llms", kMarker, {2}, {}, true},      {"llcs", kMarker, {}, {20}, true},
      {"llcs", kNowhere, {}, {20}, true},    {"llcs", kCost, {}, {20}, true},
      {"lclcs", kMarker, {}, {20}, true},    // together, when it is known that nothing follows
      {"lclcs", kCost, {}, {10, 10}, true},  // each at once
      {"lclms", kMarker, {2}, {}, true},     // one without a marker, with the next that has one
      {"lclms", kCost, {1}, {10}, true},     // but not if it counts by its cost
      {"lcslms", kMarker, {1}, {10}, true},  // it was idle in between
      {"lcllsms", kMarker, {3}, {}, true},   // it was not
      {"lmlms", kNowhere, {1, 1}, {}, true}, {"lmsl", kMarker, {1}, {}, false},
      {"lmms", kMarker, {1, 0}, {}, true},  // a marker behind nothing
      {"s", kMarker, {}, {}, true},
  };
  for (const Case& each : cases) {
    INFO(each.steps << " from " << static_cast<int>(each.from));
    Stream stream;
    stream.work.TimeFrom(each.from);
    std::uint64_t id = 0;
    std::uint32_t launches = 0, settled = 0;
    for (const char step : std::string(each.steps)) {
      if (step == 'l') stream.work.Launched(kKind, 10), ++launches;
      if (step == 'c') stream.work.Close(++id);
      if (step == 'm') {
        stream.work.CloseToMark(++id, 0);
        CHECK(stream.work.UnmarkedNs() == 0);
        CHECK(stream.work.SetMarker(id, &g_first));
      }
      if (step == 's') settled += stream.Settle(id);
    }
    std::vector<std::uint32_t> measured;
    for (const SettledWork& done : stream.measured)
      measured.push_back(done.work.launches);
    CHECK(measured == each.measured);
    CHECK(stream.unmeasured == each.unmeasured);
    CHECK(stream.work.IsIdle() == each.is_idle);
    CHECK(settled == launches - (each.is_idle ? 0 : 1));
  }
}

TEST_CASE("what follows a marker is measured from there, whatever the work before it was", "[work]") {
  for (const TimedFrom from : {TimedFrom::kNowhere, TimedFrom::kMarker, TimedFrom::kCost}) {
    Stream stream;
    stream.work.TimeFrom(from, from == TimedFrom::kMarker ? &g_start : nullptr);
    for (const std::uint64_t id : {1, 2}) {
      stream.work.Launched(kKind, 10);
      stream.work.CloseToMark(id, id);
      stream.work.SetMarker(id, id == 1 ? &g_first : &g_second, id == 2 ? &g_stop : nullptr);
    }
    CHECK(stream.work.OldestMarked()->marker == &g_first);
    CHECK(stream.work.IsMarked());
    CHECK(stream.Settle(2) == 2);
    REQUIRE(stream.measured.size() == 2);
    CHECK(stream.measured[0].from == from);
    CHECK(stream.measured[0].start == (from == TimedFrom::kMarker ? &g_start : nullptr));
    CHECK(stream.measured[0].marker == &g_first);
    CHECK(stream.measured[1].from == TimedFrom::kMarker);
    CHECK(stream.measured[1].start == nullptr);
    CHECK(stream.measured[1].timed == 2);
    CHECK(stream.measured[0].stop == nullptr);
    CHECK(stream.measured[1].stop == &g_stop);
    CHECK(stream.work.EndTime() == nullptr);
    CHECK(stream.work.From() == TimedFrom::kNowhere);
  }
}

TEST_CASE("a batch that was settled meanwhile takes no marker", "[work]") {
  Stream stream;
  stream.work.Launched(kKind, 10);
  stream.work.CloseToMark(1, 0);
  CHECK(stream.Settle(1) == 1);
  CHECK_FALSE(stream.work.SetMarker(1, &g_first));
  CHECK(stream.work.OldestMarked() == nullptr);
}

TEST_CASE("a start marker that was not measured is handed back", "[work]") {
  Stream stream;
  stream.work.TimeFrom(TimedFrom::kMarker, &g_start);
  std::vector<void*> markers;
  stream.work.ForEachMarker([&](void* marker) { markers.push_back(marker); });
  CHECK(markers == std::vector<void*>{&g_start});
  CHECK(stream.work.EndTime() == &g_start);
  CHECK(stream.work.EndTime() == nullptr);
}

TEST_CASE("what is not settled can be weighed anew", "[work]") {
  Stream stream;
  stream.work.TimeFrom(TimedFrom::kCost);
  stream.work.Launched(kKind, 10);
  stream.work.Close(1);
  stream.work.Launched(kKind, 10);
  stream.work.Launched(kKind, 10);
  stream.work.ForEach([](InFlight* work, const LaunchMix& mix) { work->cost_ns = 100 * mix.parts[0].launches; });
  stream.work.CloseToMark(2, 0);
  stream.work.SetMarker(2, &g_first);
  CHECK(stream.work.CostToOldestMarkedNs() == 300);
  CHECK(stream.Settle(2) == 3);
  CHECK(stream.unmeasured == std::vector<std::uint64_t>{100});
  CHECK(stream.measured[0].work.cost_ns == 200);
}
