// priority as a table: which clients are attached and busy, and which gates follow. What all policies have in common
// (gangs, turns, windows, linger, guard) is shown here, too.
#include <algorithm>

#include "tests/unit/daemon/policy_world.h"

using namespace xschedd::policy;
using namespace xschedd::policy::test;

TEST_CASE("priority: which clients are open") {
  Check("alone", {{1, 0, 0, true, '-'}});
  Check("equals share, untracked", {{1, 5, 0, true, '-'}, {2, 5, 0, true, '-'}});
  Check("another device does not matter", {{1, 50, 0, true, '-'}, {2, 0, 1, true, '-'}});
  Check("idle important one: the others run", {{1, 50, 0, false, 'o'}, {2, 0, 0, true, 'o'}});
  Check("busy important one: the others wait", {{1, 50, 0, true, 'o'}, {2, 0, 0, true, 'H', Why::kPriority}});
  Check("idle ones are shut out, too", {{1, 50, 0, true, 'o'}, {2, 0, 0, false, 'H', Why::kPriority}});
  Check("three levels",
        {{1, 50, 0, false, 'o'}, {2, 10, 0, true, 'o'}, {3, 0, 0, true, 'H', Why::kPriority}, {4, 10, 0, true, 'o'}});
  Check("negative is a priority", {{1, -50, 0, true, 'H', Why::kPriority}, {2, -49, 0, true, 'o'}});
}

TEST_CASE("priority: which clients are awaited") {
  World world(2);
  world.Add(1, 50, 0, true);
  world.Add(2, 0, 0, false);
  world.Add(3, 60, 1, true);
  CHECK(!world.At(kNow).gates[0].awaited);  // the other has no work
  world.state.tenants[1].busy = true;
  const Decision decision = world.At(kNow + 1);
  REQUIRE(decision.gates[1].held);
  CHECK(decision.gates[0].awaited);
  CHECK(!decision.gates[1].awaited);
  CHECK(!decision.gates[2].awaited);
  // No client waits for one that lets others run beside it.
  world.state.settings.tolerance_percent = 5;
  BenefitMemory& benefit = world.state.groups[0].memory.benefit.Use();
  benefit.mode = benefit.settled = BenefitMemory::Mode::kBeside;
  benefit.next_trial_ns = kNever;
  CHECK(!world.At(kNow + 2).gates[0].awaited);
}

TEST_CASE("priority: an administrator's hold") {
  Check("held whatever its priority; no client waits for it",
        {{1, 100, 0, true, 'H', Why::kHold, true}, {2, 0, 0, true, '-'}});
  Check("held alone", {{1, 0, 0, false, 'H', Why::kHold, true}});
  Check("a held one does not make others tracked",
        {{1, 100, 0, true, 'H', Why::kHold, true}, {2, 5, 0, true, '-'}, {3, 5, 0, true, '-'}});
}

TEST_CASE("priority: groups open and close as one") {
  Check("held everywhere for what is busy on one device",
        {{1, 50, 0, true, 'o'}, {2, 0, 0, true, 'H', Why::kPriority}, {2, 0, 1, true, 'H', Why::kGang}});
  Check("not for a device where it is idle",
        {{1, 50, 0, true, 'o'}, {2, 0, 0, false, 'H', Why::kPriority}, {2, 0, 1, true, 'o'}});
  Check("never one device each: 1 takes both", {{1, 10, 0, true, 'o'},
                                                {1, 10, 1, true, 'o'},
                                                {2, 5, 0, true, 'H', Why::kPriority},
                                                {2, 5, 1, true, 'H', Why::kPriority}});
  Check("a held group claims nothing: 3 may use device 0", {{1, 90, 1, true, 'o'},
                                                            {2, 50, 0, true, 'H', Why::kGang},
                                                            {2, 50, 1, true, 'H', Why::kPriority},
                                                            {3, 0, 0, true, 'o'}});
}

TEST_CASE("priority: background turns, one at a time") {
  Check("the first of equals runs", {{1, 50, 0, false, 'o'}, {2, 0, 0, true, 'o'}, {3, 0, 0, true, 'H', Why::kTurn}},
        1);
  Check("the top is not limited", {{1, 0, 0, true, '-'}, {2, 0, 0, true, '-'}}, 1);
  Check("idle ones wait for a turn, too",
        {{1, 50, 0, false, 'o'}, {2, 0, 0, true, 'o'}, {3, 0, 0, false, 'H', Why::kTurn}}, 1);

  World world(1, 1);
  world.Add(1, 50, 0, false);
  world.Add(2, 0, 0, true);
  world.Add(3, 0, 0, true);
  world.Add(4, 0, 0, true);
  const std::uint64_t turn = world.state.settings.turn_ms * kNsPerMs;
  Decision decision = world.At(kNow);
  CHECK(Letters(decision) == "ooHH");
  CHECK(decision.next_decision_ns == kNow + turn);
  CHECK(Letters(world.At(kNow + turn - 1)) == "ooHH");
  CHECK(Letters(world.At(kNow + turn)) == "oHoH");
  CHECK(Letters(world.At(kNow + 2 * turn)) == "oHHo");
  CHECK(Letters(world.At(kNow + 3 * turn)) == "ooHH");

  SECTION("an idle tenant gives its turn back") {
    world.state.tenants[1].busy = false;
    CHECK(Letters(world.At(kNow + 3 * turn + 1)) == "oHoH");
  }
  SECTION("a turn goes on after the important client's work") {
    world.state.tenants[0].busy = true;
    CHECK(Letters(world.At(kNow + 3 * turn + 1)) == "oHHH");
    world.state.tenants[0].busy = false;
    CHECK(Letters(world.At(kNow + 3 * turn + 2)) == "ooHH");
  }
  SECTION("no other group waits: the turn does not end") {
    world.state.tenants[2].busy = false;
    world.state.tenants[3].busy = false;
    CHECK(world.At(kNow + 3 * turn + 1).next_decision_ns == kNever);
    CHECK(Letters(world.At(kNow + 50 * turn)) == "ooHH");
  }
  SECTION("max_concurrent overrides the device's default") {
    world.state.settings.max_concurrent = 2;
    CHECK(Letters(world.At(kNow + 3 * turn + 1)) == "oooH");
    world.state.settings.max_concurrent = 0;
    CHECK(Letters(world.At(kNow + 3 * turn + 2)) == "oooo");
  }
}

TEST_CASE("priority: a group in its turn is open for its idle clients, too") {
  World world(1, 1);
  world.Add(1, 50, 0, false);
  world.Add(2, 0, 0, true);
  world.state.tenants.push_back(Tenant{.client = 299, .group = 1, .device = 0});
  CHECK(Letters(world.At(kNow)) == "ooo");
}

TEST_CASE("priority: windows") {
  World world(1);
  world.Add(1, 50, 0, false);
  world.Add(2, 0, 0, true);
  Decision decision = world.At(kNow);
  CHECK(decision.gates[0].window_us == 20'000);
  CHECK(decision.gates[0].window_floor == 4);
  CHECK(decision.gates[1].window_us == 500);
  CHECK(decision.gates[1].window_floor == 2);
  world.Add(3, 0, 0, true);
  world.Add(4, 0, 0, false);
  decision = world.At(kNow);
  CHECK(decision.gates[1].window_us == 250);
  CHECK(decision.gates[2].window_us == 250);
  CHECK(decision.gates[2].window_floor == 1);
  CHECK(decision.gates[3].window_us == 250);
  world.state.settings.window_us = 1;
  CHECK(world.At(kNow).gates[1].window_us == 1);  // 0 would mean no limit
  world.state.settings.window_us = 0;
  decision = world.At(kNow);
  CHECK(decision.gates[1].window_us == 0);
  CHECK(decision.gates[1].window_floor == 0);
}

TEST_CASE("priority: top clients divide their window, and have none among equals") {
  World world(1);
  world.Add(1, 50, 0, true);
  world.Add(2, 50, 0, true);
  CHECK(world.At(kNow).gates[0].window_us == 0);
  world.Add(3, 0, 0, true);
  Decision decision = world.At(kNow);
  CHECK(decision.gates[0].window_us == 10'000);
  CHECK(decision.gates[1].window_us == 10'000);
  CHECK(decision.gates[1].window_floor == 4);
  world.state.settings.top_window_us = 0;
  decision = world.At(kNow);
  CHECK(decision.gates[0].window_us == 0);
  CHECK(decision.gates[0].window_floor == 0);
}

TEST_CASE("priority: linger") {
  World world(1);
  world.state.settings.linger_us = 200;
  world.Add(1, 50, 0, false).idle_since_ns = kNow;
  world.Add(2, 0, 0, true);
  Decision decision = world.At(kNow + 1);
  CHECK(Letters(decision) == "oH");
  CHECK(decision.gates[1].why == Why::kLinger);
  CHECK(decision.gates[1].held_for == 100);
  CHECK(decision.next_decision_ns == kNow + 200 * kNsPerUs);
  decision = world.At(kNow + 200 * kNsPerUs);
  CHECK(Letters(decision) == "oo");
  CHECK(decision.next_decision_ns == kNever);
}

TEST_CASE("priority: the starvation guard") {
  World world(1);
  world.Add(1, 50, 0, true);
  world.Add(2, 0, 0, true);
  const std::uint64_t turn = world.state.settings.guard_ms_per_s * kNsPerMs;
  Decision decision = world.At(kNow);
  CHECK(Letters(decision) == "oH");
  const std::uint64_t due = kNow + kNsPerS - turn;
  CHECK(decision.next_decision_ns == due);
  CHECK(Letters(world.At(due - 1)) == "oH");
  decision = world.At(due);
  CHECK(Letters(decision) == "oo");
  CHECK(decision.gates[1].why == Why::kGuard);
  CHECK(decision.gates[1].window_us == 500);
  CHECK(decision.next_decision_ns == due + turn);

  SECTION("the turn ends, the next comes a second later") {
    decision = world.At(due + turn);
    CHECK(Letters(decision) == "oH");
    CHECK(decision.next_decision_ns == due + kNsPerS);
    CHECK(Letters(world.At(due + kNsPerS)) == "oo");
  }
  SECTION("short openings do not put it off") {
    world.At(due + turn);
    for (int i = 1; i <= 9; ++i) {
      const std::uint64_t t = due + turn + static_cast<std::uint64_t>(i) * kNsPerS / 10;
      world.state.tenants[0].busy = false;
      CHECK(Letters(world.At(t)) == "oo");
      world.state.tenants[0].busy = true;
      CHECK(Letters(world.At(t + 1000)) == "oH");
    }
    CHECK(Letters(world.At(due + kNsPerS)) == "oo");
  }
  SECTION("a long opening does") {
    world.At(due + turn);
    world.state.tenants[0].busy = false;
    world.At(due + turn + 1);
    world.state.tenants[0].busy = true;
    CHECK(Letters(world.At(due + 3 * turn)) == "oH");
    CHECK(Letters(world.At(due + kNsPerS)) == "oH");
  }
  SECTION("an opening meanwhile takes nothing from the turn") {
    world.state.tenants[0].busy = false;
    CHECK(Letters(world.At(due + 1)) == "oo");
    world.state.tenants[0].busy = true;
    CHECK(Letters(world.At(due + 2)) == "oo");
    CHECK(Letters(world.At(due + turn)) == "oH");
  }
  SECTION("a moment alone does not put it off") {
    world.At(due + turn);
    world.state.groups[0].hold = true;
    CHECK(Letters(world.At(due + kNsPerS / 2)) == "H-");
    world.state.groups[0].hold = false;
    CHECK(Letters(world.At(due + kNsPerS / 2 + 1)) == "oH");
    CHECK(Letters(world.At(due + kNsPerS)) == "oo");
  }
  SECTION("a long time alone does") {
    world.At(due + turn);
    world.state.groups[0].hold = true;
    CHECK(Letters(world.At(due + 2 * turn)) == "H-");
    world.state.groups[0].hold = false;
    CHECK(Letters(world.At(due + 10 * turn)) == "oH");
    CHECK(Letters(world.At(due + kNsPerS)) == "oH");
  }
  SECTION("idle: the turn is over") {
    world.state.tenants[1].busy = false;
    CHECK(Letters(world.At(due + 1)) == "oH");
    world.state.tenants[1].busy = true;
    CHECK(Letters(world.At(due + 2)) == "oH");
  }
  SECTION("off") {
    world.state.settings.guard_ms_per_s = 0;
    decision = world.At(due + 1);
    CHECK(Letters(decision) == "oH");
    CHECK(decision.next_decision_ns == kNever);
    CHECK(Letters(world.At(due + 100 * kNsPerS)) == "oH");
  }
}

TEST_CASE("priority: waiting for a turn counts for the guard") {
  World world(1, 1);
  world.Add(1, 50, 0, true);
  world.Add(2, 0, 0, true);
  world.Add(3, 0, 0, true);
  const std::uint64_t turn = world.state.settings.guard_ms_per_s * kNsPerMs;
  CHECK(Letters(world.At(kNow)) == "oHH");
  world.state.tenants[0].busy = false;
  Decision decision = world.At(kNow + turn / 4);
  CHECK(Letters(decision) == "ooH");
  CHECK(decision.gates[2].why == Why::kTurn);
  CHECK(decision.gates[2].held_for == 200);
  world.state.tenants[0].busy = true;
  CHECK(Letters(world.At(kNow + turn / 2)) == "oHH");
  CHECK(Letters(world.At(kNow + kNsPerS - turn)) == "ooH");
  CHECK(Letters(world.At(kNow + kNsPerS)) == "oHH");
  CHECK(Letters(world.At(kNow + 2 * kNsPerS - turn)) == "oHo");
}

TEST_CASE("priority: a device has one guard slot a second, whatever its limit") {
  for (const std::uint32_t limit : {0u, 1u, 2u}) {
    INFO(limit);
    World world(1, limit);
    world.Add(1, 50, 0, true);
    world.Add(2, 0, 0, true);
    world.Add(3, 0, 0, true);
    const std::uint64_t turn = world.state.settings.guard_ms_per_s * kNsPerMs;
    const std::uint64_t due = kNow + kNsPerS - turn;
    CHECK(Letters(world.At(kNow)) == "oHH");
    CHECK(Letters(world.At(due)) == "ooH");
    CHECK(Letters(world.At(due + turn)) == "oHH");
    CHECK(Letters(world.At(due + kNsPerS)) == "oHo");
    CHECK(Letters(world.At(due + 2 * kNsPerS)) == "ooH");
  }
}

TEST_CASE("priority: several levels below the top divide one window") {
  World world(1);
  world.Add(1, 50, 0, false);
  world.Add(2, 10, 0, true);
  world.Add(3, 10, 0, true);
  world.Add(4, 0, 0, true);
  Decision decision = world.At(kNow);
  CHECK(Letters(decision) == "oooH");
  CHECK(decision.gates[1].window_us == 250);
  CHECK(decision.gates[2].window_us == 250);
  // With its guard turn the lowest is the third.
  world.At(kNow + 1);
  decision = world.At(kNow + kNsPerS - world.state.settings.guard_ms_per_s * kNsPerMs);
  CHECK(Letters(decision) == "oooo");
  for (int i = 1; i <= 3; ++i)
    CHECK(decision.gates[static_cast<std::size_t>(i)].window_us == 166);
}

TEST_CASE("the names of the policies") {
  for (const std::string_view name : NameTexts()) {
    REQUIRE(NameFrom(name));
    CHECK(Text(*NameFrom(name)) == name);
  }
  CHECK(!NameFrom("best"));
  const auto quoted = [](std::string_view name) { return "\"" + std::string(name) + "\""; };
  const std::vector<std::string_view> names = NameTexts();
  CHECK(NamesText().starts_with(quoted(names[0]) + ", " + quoted(names[1]) + ", "));
  CHECK(NamesText().ends_with(quoted(names[names.size() - 2]) + " or " + quoted(names.back())));
}
