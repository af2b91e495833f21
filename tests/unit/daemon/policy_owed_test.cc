// Groups owe what their turns lasted longer, as launches may that are longer than a turn.
#include <algorithm>
#include <random>

#include "daemon/policy/turns.h"
#include "tests/unit/daemon/policy_device.h"
#include "tests/unit/daemon/policy_world.h"

using namespace xschedd::policy;
using namespace xschedd::policy::test;

namespace {

// The part of the time in which it can use the device.
double FillsOf(const Load& load) {
  const auto work_ns = static_cast<double>(load.burst * load.kernel_ns);
  return load.burst == 0 ? 1 : work_ns / (work_ns + static_cast<double>(load.pause_ns));
}

// What each uses in 10 s of an equal part of them, below one that has no work. Before that, all have been there for 5
// s: how long launches are is known only once some have ended.
std::vector<double> PartsOf(std::vector<Load> loads) {
  World world(1, 1);
  world.state.settings.linger_us = Settings{}.linger_us;
  for (std::uint64_t group = 1; group <= loads.size(); ++group)
    world.Add(group, 0, 0, false);
  world.Add(100, 50, 0, false);
  const std::size_t equals = loads.size();
  loads.push_back(Stepping(500, 1, 1'000'000'000));
  ModelDevices model(world.state, loads, kNow);
  model.Run(kNow + 5 * kNsPerS, [](const ModelDevices&) {});
  std::vector<double> parts;
  for (std::size_t i = 0; i < equals; ++i)
    parts.push_back(-static_cast<double>(model.UsedNs(i)));
  model.Run(kNow + 15 * kNsPerS, [](const ModelDevices&) {});
  for (std::size_t i = 0; i < equals; ++i)
    parts[i] = (parts[i] + static_cast<double>(model.UsedNs(i))) * static_cast<double>(equals) / 10e9;
  return parts;
}

// Each has an equal part, within a tenth and one launch: it cannot end in the middle of one.
void CheckEqual(const std::vector<Load>& loads) {
  std::uint64_t longest_ns = 0;
  for (const Load& load : loads)
    longest_ns = std::max(longest_ns, load.kernel_ns);
  const double launch = static_cast<double>(longest_ns * loads.size()) / 10e9;
  const std::vector<double> parts = PartsOf(loads);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    INFO(i << " of " << parts.size() << " (" << loads[i].burst << " of " << loads[i].kernel_ns << " ns, pauses of "
           << loads[i].pause_ns << "): " << parts[i]);
    CHECK(parts[i] > 0.9 * FillsOf(loads[i]) - launch);
    CHECK(parts[i] < 1.1 + launch);
  }
}

}  // namespace

TEST_CASE("turns: an equal part for each whose launches are longer than a turn") {
  const struct {
    const char* name;
    std::vector<Load> loads;
  } cases[] = {
      {"two, of 130 and 290 ms", {Stepping(129'800, 0, 0), Stepping(288'700, 0, 0)}},
      {"one of them waits for each", {Stepping(287'800, 1, 32), Stepping(128'600, 0, 0)}},
      {"three", {Stepping(185'400, 1, 219), Stepping(190'700, 0, 0), Stepping(132'400, 0, 0)}},
      {"one, and one just shorter than a turn", {Stepping(59'700, 2, 108), Stepping(266'900, 0, 0)}},
  };
  for (const auto& row : cases) {
    INFO(row.name);
    CheckEqual(row.loads);
  }
}

TEST_CASE("turns: an equal part for each that always has work, however long its launches are", "[properties]") {
  for (std::uint32_t seed = 1; seed <= Seeds(100); ++seed) {
    std::mt19937 random(seed);
    const auto from = [&](std::uint32_t low, std::uint32_t high) { return low + random() % (high - low + 1); };
    std::vector<Load> loads(from(2, 5));
    for (Load& load : loads) {
      const bool is_long = from(0, 1) != 0;
      const bool pauses = from(0, 1) != 0;
      const std::uint32_t most_us = from(0, 1) != 0 ? 60'000 : 300'000;
      load = is_long ? Stepping(from(5'000, most_us), pauses ? from(1, 3) : 0, pauses ? from(20, 300) : 0)
                     : Stepping(from(50, 500), pauses ? from(10, 200) : 0, pauses ? from(20, 300) : 0);
    }
    INFO("seed " << seed);
    CheckEqual(loads);
  }
}

TEST_CASE("turns: one launch at a time of those of which two do not fit into a turn") {
  World world(1, 1);
  world.Add(1, 50, 0, false);
  world.Add(2, 0, 0, true);
  world.Add(3, 0, 0, true);
  const std::uint64_t turn_ms = world.state.settings.turn_ms;
  const auto floor_with = [&](std::uint64_t launch_ms, bool others) {
    world.state.groups[1].memory = world.state.groups[2].memory = {};
    world.state.tenants[2].busy = others;
    world.state.groups[1].memory.launched = 1;
    world.state.groups[1].memory.ran_ns = launch_ms * kNsPerMs;
    const Decision decision = world.At(kNow);
    REQUIRE(Letters(decision) == "ooH");
    return decision.gates[1].window_floor;
  };
  CHECK(floor_with(turn_ms / 2, true) == 2);
  CHECK(floor_with(turn_ms / 2 + 1, true) == 1);
  CHECK(floor_with(turn_ms / 2 + 1, false) == 2);  // nobody waits for its turn
}

TEST_CASE("turns: how long launches take is known within a quarter, although two more are counted while in flight") {
  constexpr std::uint64_t kLaunchNs = 290 * kNsPerMs;
  GroupMemory memory;
  for (int launch = 0; launch < 20; ++launch) {
    Turns::CountLaunches(memory, 1, 0);
    Turns::CountLaunches(memory, 1, kLaunchNs);
    Turns::CountLaunches(memory, 0, kLaunchNs);
    CHECK(Turns::LaunchNs(memory) < kLaunchNs * 5 / 4);
    CHECK(Turns::LaunchNs(memory) > kLaunchNs * 3 / 4);
  }
}

TEST_CASE("turns: who has more than a turn has less of the next ones") {
  World world(1, 1);
  world.Add(1, 50, 0, false);
  for (std::uint64_t group = 2; group <= 3; ++group)
    world.Add(group, 0, 0, true);
  Tenant& important = world.state.tenants[0];
  Tenant& lengthy = world.state.tenants[1];
  Tenant& other = world.state.tenants[2];
  const GroupMemory& memory = world.state.groups[1].memory;
  const auto ms = [](std::uint64_t number) { return kNow + number * kNsPerMs; };
  REQUIRE(world.state.settings.turn_ms == 100);
  const auto launch_each = [&](std::uint64_t each_ms) {
    world.state.groups[1].memory.launched = 1;
    world.state.groups[1].memory.ran_ns = each_ms * kNsPerMs;
    lengthy.is_in_flight = true;
  };
  const auto end = [&](std::uint64_t ran_ms) {
    lengthy.is_in_flight = false;
    lengthy.ran_ns = ran_ms * kNsPerMs;
  };
  launch_each(250);
  CHECK(Letters(world.At(kNow)) == "ooH");

  SECTION("its turn lasts until the launch ends, then it passes one, and the next is shorter") {
    CHECK(Letters(world.At(ms(50))) == "oHH");
    CHECK(Letters(world.At(ms(100))) == "oHH");
    CHECK(Letters(world.At(ms(249))) == "oHH");
    end(250);
    CHECK(Letters(world.At(ms(250))) == "oHo");
    CHECK(memory.owed_ns == static_cast<std::int64_t>(150 * kNsPerMs));
    launch_each(250);
    lengthy.ran_ns = 0;
    const Decision passes = world.At(ms(350));
    CHECK(Letters(passes) == "oHo");
    CHECK(passes.gates[1].why == Why::kTurn);
    CHECK(passes.gates[1].held_for == 300);
    CHECK(Letters(world.At(ms(449))) == "oHo");
    CHECK(Letters(world.At(ms(450))) == "ooH");
    CHECK(world.At(ms(451)).next_decision_ns == ms(450 + 25));
  }
  SECTION("of others, the next two pass before it") {
    world.Add(4, 0, 0, true);
    world.At(ms(50));
    end(250);
    CHECK(Letters(world.At(ms(250))) == "oHoH");
    CHECK(Letters(world.At(ms(350))) == "oHHo");
    CHECK(Letters(world.At(ms(450))) == "oHoH");
    CHECK(Letters(world.At(ms(550))) == "oHHo");
    CHECK(Letters(world.At(ms(650))) == "ooHH");
  }
  SECTION("what all that wait owe is forgotten, and who owes fewest turns goes first") {
    world.state.groups[2].memory.owed_ns = 350 * kNsPerMs;
    world.At(ms(50));
    end(250);
    CHECK(Letters(world.At(ms(250))) == "ooH");
    CHECK(memory.owed_ns == static_cast<std::int64_t>(50 * kNsPerMs));  // of 150
    // A turn forgotten, and one passed.
    CHECK(world.state.groups[2].memory.owed_ns == static_cast<std::int64_t>(150 * kNsPerMs));
  }
  SECTION("one that pauses when it could pass to it may be back") {
    world.At(ms(50));
    end(250);
    world.At(ms(250));
    other.busy = false;
    other.idle_since_ns = ms(345);
    const Decision waits = world.At(ms(350));
    CHECK(Letters(waits) == "oHo");
    CHECK(waits.gates[1].held_for == 300);
    CHECK(waits.next_decision_ns == ms(345 + 25));  // half of its next turn
    SECTION("if it is, it goes first") {
      other.busy = true;
      other.busy_since_ns = ms(360);
      CHECK(Letters(world.At(ms(360))) == "oHo");
      CHECK(memory.owed_ns == static_cast<std::int64_t>(50 * kNsPerMs));
    }
    SECTION("not for longer than launches end in") {
      CHECK(Letters(world.At(ms(345 + 25))) == "ooH");
    }
  }
  SECTION("who passes is not starved") {
    world.At(ms(50));
    end(900);
    world.At(ms(900));
    lengthy.ran_ns = 0;
    for (std::uint64_t now = 1'000; now < 1'700; now += 100)
      CHECK(Letters(world.At(ms(now))) == "oHo");
    CHECK(world.At(ms(1'690)).gates[1].why == Why::kTurn);
  }
  SECTION("launches that never end are waited for, a second at most, and owed") {
    CHECK(Letters(world.At(ms(50))) == "oHH");
    CHECK(Letters(world.At(ms(1'099))).substr(0, 2) == "oH");
    const Decision over = world.At(ms(1'100));
    CHECK(Letters(over) == "oHo");
    CHECK(over.gates[2].why == Why::kOpen);
    CHECK(memory.owed_ns == static_cast<std::int64_t>(1'000 * kNsPerMs));
  }
  SECTION("what it had while nobody waited is not owed") {
    other.busy = false;
    other.idle_since_ns = ms(1);
    world.At(ms(2));
    world.At(ms(50));
    end(250);
    CHECK(Letters(world.At(ms(250))) == "ooH");
    CHECK(memory.owed_ns == 0);
  }
  SECTION("nor the time for which a more important one held it") {
    const bool is_cut = GENERATE(true, false);
    INFO("the driver gives processes time slices: " << is_cut);
    if (!is_cut) world.state.settings.max_concurrent = 1;
    if (!is_cut) world.state.devices[0].default_max_concurrent = 0;
    world.At(ms(50));
    important.busy = true;
    CHECK(Letters(world.At(ms(60))) == "oHH");
    important.busy = false;
    important.idle_since_ns = ms(260);
    CHECK(Letters(world.At(ms(260))) == "oHH");
    end(120);
    CHECK(Letters(world.At(ms(270))) == "oHo");
    // Without slices its launches may have had the device in that time.
    CHECK(memory.owed_ns == static_cast<std::int64_t>((is_cut ? 0 : 20) * kNsPerMs));
  }
  SECTION("a turn in which nothing more fits is owed to it") {
    launch_each(60);
    world.At(ms(1));
    lengthy.busy = lengthy.is_in_flight = false;
    lengthy.idle_since_ns = ms(60);
    CHECK(Letters(world.At(ms(60))) == "oHo");
    CHECK(memory.owed_ns == -static_cast<std::int64_t>(40 * kNsPerMs));
    lengthy.busy = true;
    lengthy.busy_since_ns = ms(61);
    world.At(ms(61));
    CHECK(Letters(world.At(ms(160))) == "ooH");
    CHECK(world.At(ms(161)).next_decision_ns == ms(160 + 140 - 70));
  }
}
