// Equals that take turns have equal parts of the time, also if they pause.
#include <algorithm>
#include <random>

#include "tests/unit/daemon/policy_device.h"
#include "tests/unit/daemon/policy_world.h"

using namespace xschedd::policy;
using namespace xschedd::policy::test;

namespace {

bool IsLong(const Load& load) {
  return load.kernel_ns >= kNsPerMs;
}

// The longest of the long launches that may begin in such a pause, at whose end it must have ended.
std::uint64_t LongestIn(const std::vector<Load>& loads, std::uint64_t pause_ns) {
  std::uint64_t longest_ns = 0;
  for (const Load& load : loads)
    if (IsLong(load) && load.kernel_ns * 3 / 2 < pause_ns) longest_ns = std::max(longest_ns, load.kernel_ns);
  return longest_ns;
}

// What each used in 10 s, or 20 if launches are longer than a turn, of what it can use in an equal part of them: it
// pauses in that, too. Each pause that it lends lasts as much longer as the launch that the borrower has in flight, and
// `handover_ns`. `is_cut`: as if time slices cut kernels, which they do not in the model.
std::vector<double> PartsOf(std::vector<Load> loads, Load above, bool is_cut = true, std::uint64_t handover_ns = 0) {
  World world(1, is_cut ? 1 : 0);
  const std::uint64_t turn_ns = world.state.settings.turn_ms * kNsPerMs;
  const bool has_longer =
      std::any_of(loads.begin(), loads.end(), [&](const Load& load) { return load.kernel_ns > turn_ns; });
  const std::uint64_t seconds = has_longer ? 20 : 10;
  if (!is_cut) world.state.settings.max_concurrent = 1;
  world.state.settings.linger_us = Settings{}.linger_us;
  for (std::uint64_t group = 1; group <= loads.size(); ++group)
    world.Add(group, 0, 0, false);
  world.Add(100, 50, 0, false);
  loads.push_back(above);
  ModelDevices model(world.state, loads, kNow);
  model.Run(kNow + seconds * kNsPerS, [](const ModelDevices&) {});
  const std::size_t equals = loads.size() - 1;
  const double left_ns = static_cast<double>(seconds * kNsPerS - model.UsedNs(equals));
  std::vector<double> parts;
  for (std::size_t i = 0; i < equals; ++i) {
    const Load& load = loads[i];
    const auto work_ns = static_cast<double>(load.burst * load.kernel_ns);
    const bool lends = load.pause_ns > 2 * kNsPerUs * world.state.settings.linger_us;
    const auto pause_ns =
        static_cast<double>(load.pause_ns + (lends ? handover_ns + LongestIn(loads, load.pause_ns) : 0));
    const double fills = load.burst == 0 ? 1 : work_ns / (work_ns + pause_ns);
    parts.push_back(static_cast<double>(model.UsedNs(i)) / (fills * left_ns / static_cast<double>(equals)));
  }
  return parts;
}

}  // namespace

TEST_CASE("turns: an equal part for each of several that pause") {
  const Load loop{.kernel_ns = 300 * kNsPerUs};
  const struct {
    const char* name;
    std::vector<Load> loads;
    double least = 0.9;
    Load above = Stepping(500, 1, 1'000'000);
    bool is_cut = true;
  } cases[] = {
      {"nobody pauses", {loop, loop, loop}},
      {"a training, and a loop that synchronises", {Stepping(300, 30, 1'500), Stepping(330, 4, 40)}},
      {"a training, and a loop", {Stepping(300, 200, 3'000), loop}},
      {"both pause", {Stepping(300, 30, 1'500), Stepping(100, 50, 2'500)}},
      {"long pauses, as for copies", {Stepping(100, 100, 10'000), loop}},
      {"five", {Stepping(300, 30, 1'500), loop, Stepping(100, 100, 2'000), Stepping(330, 4, 40), loop}},
      {"long kernels, and a training", {Stepping(20'000, 2, 100), Stepping(300, 30, 1'500), loop}},
      {"one long kernel at a time", {Stepping(30'000, 1, 100), loop, loop}},
      {"long kernels one after the other", {Stepping(20'000, 0, 0), Stepping(300, 30, 1'500), loop}},
      {"most of a turn at a time", {Stepping(80'000, 1, 100), loop}},
      {"launches of a turn", {Stepping(100'000, 0, 0), loop, Stepping(100, 50, 2'500)}},
      {"launches of several turns", {Stepping(350'000, 0, 0), loop, loop}},
      {"the same, of a host that waits for each", {Stepping(350'000, 1, 300), Stepping(330, 4, 300), loop}},
      {"two such", {Stepping(150'000, 2, 300), Stepping(250'000, 0, 0), loop}},
      {"below one that often works",
       {Stepping(190'000, 0, 0), Stepping(50'000, 2, 100), loop, loop},
       0.85,
       Stepping(500, 1, 30'000),
       false},
      {"below one that works for a third of the time",
       {Stepping(300, 30, 1'500), loop},
       0.9,
       Stepping(100, 50, 10'000)},
  };
  for (const auto& row : cases) {
    const std::vector<double> parts = PartsOf(row.loads, row.above, row.is_cut);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      INFO(row.name << ", " << i << ": " << parts[i]);
      CHECK(parts[i] > row.least);
    }
  }
}

TEST_CASE("turns: an equal part for each, whatever their steps and pauses", "[properties]") {
  for (std::uint32_t seed = 1; seed <= Seeds(100); ++seed) {
    std::mt19937 random(seed);
    const auto from = [&](std::uint32_t low, std::uint32_t high) { return low + random() % (high - low + 1); };
    std::vector<Load> loads(from(2, 6));
    const bool have_long = from(0, 1) != 0;
    for (Load& load : loads) {
      const bool pauses = from(0, 3) != 0;
      load = Stepping(from(50, 500), pauses ? from(2, 200) : 0, pauses ? from(20, from(0, 1) ? 500 : 20'000) : 0);
      if (have_long && from(0, 1) != 0)
        load =
            Stepping(from(5'000, from(0, 1) ? 60'000 : 300'000), pauses ? from(1, 3) : 0, pauses ? from(20, 500) : 0);
    }
    // What the other has in flight ends first: a window, and a kernel.
    const std::uint64_t handover_ns = (Settings{}.window_us + 500) * kNsPerUs;
    const std::vector<double> parts =
        PartsOf(loads, Stepping(500, 1, from(20, 1'000) * 1'000), !have_long, handover_ns);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      INFO("seed " << seed << ", " << i << " of " << parts.size() << " (" << loads[i].burst << " of "
                   << loads[i].kernel_ns << " ns, pauses of " << loads[i].pause_ns << "): " << parts[i]);
      CHECK(parts[i] > (have_long ? 0.65 : 0.7));
    }
  }
}

TEST_CASE("turns: whoever is away lends the rest of its turn") {
  World world(1, 1);
  world.state.settings.linger_us = 200;
  world.Add(1, 50, 0, false);
  for (std::uint64_t group = 2; group <= 4; ++group)
    world.Add(group, 0, 0, true);
  const std::uint64_t turn = world.state.settings.turn_ms * kNsPerMs;
  const auto becomes = [&](std::size_t tenant, bool busy, std::uint64_t now) {
    world.state.tenants[tenant].busy = busy;
    if (!busy) world.state.tenants[tenant].idle_since_ns = now;
  };
  CHECK(Letters(world.At(kNow)) == "ooHH");
  becomes(1, false, kNow + 10 * kNsPerMs);
  CHECK(Letters(world.At(kNow + 10 * kNsPerMs)) == "ooHH");
  const std::uint64_t lent = kNow + 10 * kNsPerMs + 400 * kNsPerUs;
  const Decision kept = world.At(lent - 1);
  CHECK(Letters(kept) == "ooHH");
  CHECK(kept.next_decision_ns == lent);
  CHECK(Letters(world.At(lent)) == "oHoH");

  SECTION("it has it back as soon as it has work, and the next one's begins afterwards") {
    becomes(1, true, lent);
    const Decision back = world.At(lent + 5 * kNsPerMs);
    CHECK(Letters(back) == "ooHH");
    CHECK(back.gates[2].why == Why::kTurn);
    CHECK(back.gates[2].held_for == 200);
    CHECK(back.next_decision_ns == kNow + turn);
    CHECK(Letters(world.At(kNow + turn)) == "oHoH");
    CHECK(Letters(world.At(kNow + 2 * turn - 1)) == "oHoH");
    CHECK(Letters(world.At(kNow + 2 * turn)) == "oHHo");
  }
  SECTION("if it stays away, the next one's has begun") {
    CHECK(Letters(world.At(lent + turn - 1)) == "oHoH");
    CHECK(Letters(world.At(lent + turn)) == "oHHo");
    SECTION("and it comes before those that used theirs later") {
      becomes(1, true, lent + turn);
      CHECK(Letters(world.At(lent + 2 * turn)) == "ooHH");
    }
  }
  SECTION("held for a more important one, the borrower goes on until the lender is back") {
    becomes(0, true, lent);
    CHECK(Letters(world.At(lent + kNsPerMs)) == "oHHH");
    becomes(0, false, lent + 2 * kNsPerMs);
    CHECK(Letters(world.At(lent + 3 * kNsPerMs)) == "oHoH");
    becomes(1, true, lent);
    CHECK(Letters(world.At(lent + 4 * kNsPerMs)) == "ooHH");
  }
}

TEST_CASE("turns: long launches end in the last part of a turn") {
  World world(1, 1);
  world.Add(1, 50, 0, false);
  for (std::uint64_t group = 2; group <= 3; ++group)
    world.Add(group, 0, 0, true);
  const std::uint64_t turn = world.state.settings.turn_ms * kNsPerMs;
  const auto launches = [&](std::uint64_t launched, std::uint64_t each_us) {
    world.state.tenants[1].launched = launched;
    world.state.tenants[1].ran_ns = launched * each_us * kNsPerUs;
    world.state.tenants[1].is_in_flight = launched != 0;
  };
  const struct {
    const char* name;
    std::uint64_t launched;
    std::uint64_t each_us;
    std::uint64_t last_part_us;
  } cases[] = {
      {"of 20 ms", 4, 20'000, 30'000},
      {"of 1 ms", 50, 1'000, 1'500},
      {"of 0.9 ms, which are few windows", 50, 900, 0},
      {"of 80 ms: half of a turn at most", 1, 80'000, turn / 2 / kNsPerUs},
      {"none that are counted", 0, 0, 0},
  };
  for (const auto& row : cases) {
    INFO(row.name);
    world.state.groups[1].memory = {};
    world.state.groups[2].memory = {};
    CHECK(Letters(world.At(kNow)) == "ooH");
    launches(row.launched, row.each_us);
    const std::uint64_t last_ns = kNow + turn - row.last_part_us * kNsPerUs;
    CHECK(world.At(kNow + 1).next_decision_ns == last_ns);
    CHECK(Letters(world.At(last_ns - 1)) == "ooH");
    if (row.last_part_us != 0) {
      const Decision last = world.At(last_ns);
      CHECK(Letters(last) == "oHH");
      CHECK(last.gates[1].why == Why::kTurn);
      CHECK(last.gates[1].held_for == 300);
      CHECK(last.gates[1].awaited);
      CHECK(last.next_decision_ns == last_ns + kNsPerMs);
      CHECK(Letters(world.At(last_ns + kNsPerMs)) == "oHH");
      world.state.tenants[1].is_in_flight = false;
      CHECK(Letters(world.At(last_ns + 2 * kNsPerMs)) == "oHo");
    }
    CHECK(Letters(world.At(kNow + turn)) == "oHo");
  }
  world.state.groups[1].memory = {};
  world.state.groups[2].memory = {};
  const auto becomes = [&](std::size_t tenant, bool busy, std::uint64_t now) {
    world.state.tenants[tenant].busy = busy;
    (busy ? world.state.tenants[tenant].busy_since_ns : world.state.tenants[tenant].idle_since_ns) = now;
    world.state.tenants[tenant].is_in_flight = busy;
  };
  SECTION("not if nobody waits") {
    becomes(2, false, kNow);
    world.At(kNow);
    launches(4, 20'000);
    CHECK(Letters(world.At(kNow + turn - 10 * kNsPerMs)) == "ooH");
  }
  SECTION("all have ended as soon as it is idle then") {
    world.At(kNow);
    launches(4, 20'000);
    CHECK(Letters(world.At(kNow + turn - 25 * kNsPerMs)) == "oHH");
    becomes(1, false, kNow + turn - 20 * kNsPerMs);
    CHECK(Letters(world.At(kNow + turn - 20 * kNsPerMs)) == "oHo");
    becomes(1, true, kNow + turn - 19 * kNsPerMs);
    CHECK(Letters(world.At(kNow + turn - 19 * kNsPerMs)) == "oHo");
  }
  SECTION("or it goes on, if as much work as before fits into the rest") {
    world.state.settings.linger_us = 200;
    world.At(kNow);
    launches(4, 20'000);
    world.At(kNow + kNsPerMs);
    becomes(1, false, kNow + 50 * kNsPerMs);
    world.At(kNow + 50 * kNsPerMs);
    becomes(1, true, kNow + 51 * kNsPerMs);
    CHECK(Letters(world.At(kNow + 51 * kNsPerMs)) == "ooH");
    becomes(1, false, kNow + 75 * kNsPerMs);
    CHECK(Letters(world.At(kNow + 75 * kNsPerMs)) == "ooH");
    becomes(1, true, kNow + 76 * kNsPerMs);
    CHECK(Letters(world.At(kNow + 76 * kNsPerMs)) == "ooH");
    CHECK(Letters(world.At(kNow + turn - 1)) == "ooH");
    CHECK(Letters(world.At(kNow + turn)) == "oHH");
    world.state.tenants[1].is_in_flight = false;
    CHECK(Letters(world.At(kNow + turn + 2 * kNsPerMs)) == "oHo");
  }
  SECTION("if whoever waited is gone after the turn's end, the next turn has begun") {
    world.At(kNow);
    launches(4, 20'000);
    CHECK(Letters(world.At(kNow + turn - 25 * kNsPerMs)) == "oHH");
    const std::uint64_t gone = kNow + turn + 5 * kNsPerMs;
    becomes(2, false, gone);
    CHECK(Letters(world.At(gone)) == "ooH");
    CHECK(world.state.groups[1].memory.turn_since_ns == gone);
    CHECK(Letters(world.At(gone)) == "ooH");
    CHECK(world.state.groups[1].memory.turn_since_ns == gone);
  }
  SECTION("if more may have their turn after the turn's end, the next turn has begun") {
    world.At(kNow);
    launches(4, 20'000);
    CHECK(Letters(world.At(kNow + turn - 25 * kNsPerMs)) == "oHH");
    const std::uint64_t more = kNow + turn + 5 * kNsPerMs;
    world.state.settings.max_concurrent = 2;
    CHECK(Letters(world.At(more)) == "ooo");
    CHECK(world.state.groups[1].memory.turn_since_ns == more);
    CHECK(Letters(world.At(more)) == "ooo");
    CHECK(world.state.groups[1].memory.turn_since_ns == more);
  }
  SECTION("another's pause is too short for them") {
    world.state.settings.linger_us = 200;
    world.At(kNow);
    launches(4, 20'000);
    world.At(kNow + turn - 1);
    world.state.tenants[1].is_in_flight = false;
    CHECK(Letters(world.At(kNow + turn)) == "oHo");
    const std::uint64_t idle = kNow + turn + kNsPerMs;
    becomes(2, false, idle);
    const Decision kept = world.At(idle + kNsPerMs);
    CHECK(Letters(kept) == "oHo");
    CHECK(kept.gates[1].why == Why::kTurn);
    CHECK(kept.gates[1].held_for == 300);
    CHECK(kept.next_decision_ns == idle + 30 * kNsPerMs);
    CHECK(Letters(world.At(idle + 30 * kNsPerMs)) == "ooH");
    becomes(2, true, idle + 31 * kNsPerMs);
    CHECK(Letters(world.At(idle + 31 * kNsPerMs)) == "oHo");
  }
}

TEST_CASE("turns: one that seldom works does not wait for everybody's turn each time") {
  const Load loop{.kernel_ns = 300 * kNsPerUs};
  const struct {
    const char* name;
    Load seldom;
    std::uint32_t loops;
    std::uint64_t most_wait_us;  // on average
  } cases[] = {
      {"five requests a second", Stepping(250, 20, 200'123), 4, 10'000},
      {"twenty a second", Stepping(100, 20, 50'123), 4, 10'000},
      {"beside one", Stepping(100, 20, 50'123), 1, 10'000},
      {"beside seven", Stepping(100, 20, 200'123), 7, 10'000},
      {"with requests of 18 ms", Stepping(1'000, 18, 200'123), 4, 10'000},
      {"with a request of 40 ms each second", Stepping(1'000, 40, 1'000'123), 4, 450'000},
  };
  for (const auto& row : cases) {
    World world(1, 1);
    world.state.settings.linger_us = Settings{}.linger_us;
    std::vector<Load> loads{row.seldom};
    loads.insert(loads.end(), row.loops, loop);
    for (std::uint64_t group = 1; group <= loads.size(); ++group)
      world.Add(group, 0, 0, false);
    world.Add(100, 50, 0, false);
    loads.push_back(Stepping(500, 1, 1'000'000));
    ModelDevices model(world.state, loads, kNow);
    model.Run(kNow + 20 * kNsPerS, [](const ModelDevices&) {});
    const std::uint64_t requests = model.UsedNs(0) / (row.seldom.kernel_ns * row.seldom.burst);
    INFO(row.name << ": " << requests << " requests, which waited for " << model.HeldNs(0) / requests / 1000
                  << " us on average");
    CHECK(model.HeldNs(0) / requests < row.most_wait_us * kNsPerUs);
    for (std::uint32_t i = 1; i <= row.loops; ++i)
      CHECK(static_cast<double>(model.UsedNs(i)) >
            0.9 * static_cast<double>(20 * kNsPerS - model.UsedNs(0)) / static_cast<double>(row.loops));
  }
}

TEST_CASE("turns: who goes early, when, and what it costs") {
  World world(1, 1);
  world.state.settings.linger_us = 0;
  world.Add(1, 50, 0, false);
  for (std::uint64_t group = 2; group <= 4; ++group)
    world.Add(group, 0, 0, group != 4);
  const std::uint64_t turn = world.state.settings.turn_ms * kNsPerMs;
  const auto ms = [](std::uint64_t number) { return kNow + number * kNsPerMs; };
  const auto becomes = [&](std::size_t tenant, bool busy, std::uint64_t now) {
    world.state.tenants[tenant].busy = busy;
    (busy ? world.state.tenants[tenant].busy_since_ns : world.state.tenants[tenant].idle_since_ns) = now;
  };
  CHECK(Letters(world.At(kNow)) == "ooHH");
  becomes(3, true, ms(1));
  CHECK(Letters(world.At(ms(1))) == "ooHH");  // it has come since, and was never idle
  becomes(3, false, ms(2));
  world.At(ms(2));

  SECTION("for 20 ms, and the interrupted turn goes on as if nothing had happened") {
    becomes(3, true, ms(10));
    const Decision early = world.At(ms(10));
    CHECK(Letters(early) == "oHHo");
    CHECK(early.gates[1].why == Why::kTurn);
    CHECK(early.gates[1].held_for == 400);
    CHECK(early.next_decision_ns == ms(30));
    CHECK(Letters(world.At(ms(30) - 1)) == "oHHo");
    CHECK(Letters(world.At(ms(30))) == "ooHH");
    CHECK(Letters(world.At(ms(60))) == "ooHH");  // it has had the device since it came back
    CHECK(Letters(world.At(kNow + turn - 1)) == "ooHH");
    CHECK(Letters(world.At(kNow + turn)) == "oHoH");
    SECTION("and its own turn is shorter by that") {
      CHECK(Letters(world.At(kNow + 2 * turn)) == "oHHo");
      CHECK(Letters(world.At(kNow + 3 * turn - 20 * kNsPerMs - 1)) == "oHHo");
      CHECK(Letters(world.At(kNow + 3 * turn - 20 * kNsPerMs)) == "ooHH");
    }
  }
  SECTION("until it is idle, and not again for 20 ms, then also after a short pause") {
    becomes(3, true, ms(10));
    CHECK(Letters(world.At(ms(10))) == "oHHo");
    becomes(3, false, ms(12));
    CHECK(Letters(world.At(ms(12))) == "ooHH");
    becomes(3, true, ms(14));
    const Decision apart = world.At(ms(14));
    CHECK(Letters(apart) == "ooHH");
    CHECK(apart.next_decision_ns == ms(32));
    CHECK(Letters(world.At(ms(32))) == "oHHo");
  }
  SECTION("not after a short pause, unless it went early before") {
    becomes(3, true, ms(6));
    CHECK(Letters(world.At(ms(6))) == "ooHH");
  }
  SECTION("not more than half of a turn before its own") {
    std::uint64_t now = ms(10);
    std::uint64_t had_ms = 0;
    for (int request = 0; request < 20; ++request, now += 40 * kNsPerMs) {
      becomes(3, true, now);
      const bool is_early = Letters(world.At(now)).back() == 'o' && world.state.groups[3].memory.turn_since_ns == 0;
      if (world.state.groups[3].memory.turn_since_ns != 0) break;
      had_ms += is_early ? 8 : 0;
      world.At(now + 8 * kNsPerMs);
      becomes(3, false, now + 8 * kNsPerMs);
      world.At(now + 8 * kNsPerMs);
    }
    INFO(had_ms);
    CHECK(had_ms >= 40);
    CHECK(had_ms <= 56);
  }
  SECTION("more, if it is idle whenever its turn would have been") {
    int early = 0;
    for (std::uint64_t at = 10; at < 5'010; ++at) {
      if (at % 190 == 10) becomes(3, true, ms(at));
      if (at % 190 == 28) becomes(3, false, ms(at));
      world.At(ms(at));
      if (at % 190 == 10 && world.state.groups[3].memory.early_since_ns != 0) ++early;
    }
    CHECK(early >= 24);
  }
  SECTION("one that waits does not, nor do several at a time") {
    world.Add(5, 0, 0, false).idle_since_ns = kNow;
    world.At(ms(9));
    becomes(3, true, ms(10));
    becomes(4, true, ms(11));
    CHECK(Letters(world.At(ms(11))) == "oHHoH");
    becomes(3, false, ms(13));
    CHECK(Letters(world.At(ms(13))) == "ooHHH");
  }
  SECTION("of two that have their turn, the later one waits; a free place is a turn of its own") {
    world.state.settings.max_concurrent = 2;
    CHECK(Letters(world.At(ms(9))) == "oooH");
    becomes(3, true, ms(10));
    CHECK(Letters(world.At(ms(10))) == "ooHo");
    CHECK(Letters(world.At(ms(30))) == "oooH");
    world.state.settings.max_concurrent = 3;
    CHECK(Letters(world.At(ms(31))) == "oooo");
    CHECK(Letters(world.At(ms(50))) == "oooo");
  }
  SECTION("not before more important ones") {
    world.state.groups[3].priority = -5;
    becomes(3, true, ms(10));
    CHECK(Letters(world.At(ms(10))) == "ooHH");
  }
}
