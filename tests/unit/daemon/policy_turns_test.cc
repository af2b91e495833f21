// Equals that take turns have equal parts of the time, also if they pause.
#include <algorithm>

#include "tests/unit/daemon/policy_device.h"
#include "tests/unit/daemon/policy_world.h"

using namespace xschedd::policy;
using namespace xschedd::policy::test;

namespace {

Load Stepping(std::uint64_t kernel_us, std::uint32_t kernels, std::uint64_t pause_us) {
  return {.kernel_ns = kernel_us * kNsPerUs, .burst = kernels, .pause_ns = pause_us * kNsPerUs};
}

// What each used in 10 s, of what it can use in an equal part of them: it pauses in that, too.
std::vector<double> PartsOf(std::vector<Load> loads, Load above) {
  World world(1, 1);
  world.state.settings.linger_us = Settings{}.linger_us;
  for (std::uint64_t group = 1; group <= loads.size(); ++group)
    world.Add(group, 0, 0, false);
  world.Add(100, 50, 0, false);
  loads.push_back(above);
  ModelDevices model(world.state, loads, kNow);
  model.Run(kNow + 10 * kNsPerS, [](const ModelDevices&) {});
  const std::size_t equals = loads.size() - 1;
  const double left_ns = static_cast<double>(10 * kNsPerS - model.UsedNs(equals));
  std::vector<double> parts;
  for (std::size_t i = 0; i < equals; ++i) {
    const Load& load = loads[i];
    const auto work_ns = static_cast<double>(load.burst * load.kernel_ns);
    const double fills = load.burst == 0 ? 1 : work_ns / (work_ns + static_cast<double>(load.pause_ns));
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
    Load above = Stepping(500, 1, 1'000'000);
  } cases[] = {
      {"nobody pauses", {loop, loop, loop}},
      {"a training, and a loop that synchronises", {Stepping(300, 30, 1'500), Stepping(330, 4, 40)}},
      {"a training, and a loop", {Stepping(300, 200, 3'000), loop}},
      {"both pause", {Stepping(300, 30, 1'500), Stepping(100, 50, 2'500)}},
      {"long pauses, as for copies", {Stepping(100, 100, 10'000), loop}},
      {"five", {Stepping(300, 30, 1'500), loop, Stepping(100, 100, 2'000), Stepping(330, 4, 40), loop}},
      {"below one that works for a third of the time", {Stepping(300, 30, 1'500), loop}, Stepping(100, 50, 10'000)},
  };
  for (const auto& row : cases) {
    const std::vector<double> parts = PartsOf(row.loads, row.above);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      INFO(row.name << ", " << i << ": " << parts[i]);
      CHECK(parts[i] > 0.9);
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
