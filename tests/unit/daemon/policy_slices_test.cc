// Which time slice goes with a gate.
#include "daemon/policy/slices.h"
#include "tests/unit/daemon/policy_world.h"

using namespace xschedd::policy;
using namespace xschedd::policy::test;

namespace {

std::vector<std::uint32_t> Slices(const Decision& decision) {
  std::vector<std::uint32_t> slices;
  for (const Gate& gate : decision.gates)
    slices.push_back(gate.slice_us);
  return slices;
}
using Expected = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("slices: every case") {
  const struct {
    SliceCase of;
    std::uint32_t us;
  } cases[] = {
      {{.can_be_held = true, .is_alone_in_turn = true, .somebody_can_be = true}, kShortSliceUs},
      {{.can_be_held = true, .is_alone_in_turn = false, .somebody_can_be = true}, 0},
      {{.can_be_held = false, .is_alone_in_turn = false, .somebody_can_be = true}, kLongSliceUs},
      {{.can_be_held = false, .is_alone_in_turn = true, .somebody_can_be = true}, kLongSliceUs},  // a sharer
      {{.can_be_held = false, .is_alone_in_turn = false, .somebody_can_be = false}, 0},
      {{.can_be_held = false, .is_alone_in_turn = false, .lets_others_run = true}, kLongSliceUs},
      {{.can_be_held = true, .is_alone_in_turn = false, .lets_others_run = true}, 0},
      {{.beside_us = 500}, 500},
      {{.beside_us = 0}, 0},
      {{.beside_us = 1'000, .can_be_held = true, .is_alone_in_turn = true, .somebody_can_be = true}, 1'000},
  };
  for (auto [of, us] : cases) {
    for (const bool tracked : {true, false})
      for (const bool guarded : {true, false}) {
        of.tracked = tracked;
        of.guarded = guarded;
        CHECK(SliceOf(of) == (tracked && !guarded ? us : 0));
      }
  }
}

TEST_CASE("slices: short for those that can be held, long for the others, whichever are busy") {
  World world(2);
  world.state.settings.max_concurrent = 1;
  world.Add(1, 50, 0, true);
  world.Add(2, 0, 0, true);
  world.Add(3, -10, 0, false);
  world.Add(4, 0, 1, true);  // alone on the other device
  CHECK(Letters(world.At(kNow)) == "oHH-");
  CHECK(Slices(world.At(kNow)) == Expected{20'000, 200, 200, 0});
  world.state.tenants[0].busy = false;
  CHECK(Letters(world.At(kNow)) == "ooH-");
  CHECK(Slices(world.At(kNow)) == Expected{20'000, 200, 200, 0});
  SECTION("where several have their turn together, none has a slice") {
    for (const std::uint32_t limit : {0u, 2u}) {
      world.state.settings.max_concurrent = limit;
      CHECK(Slices(world.At(kNow)) == Expected{0, 0, 0, 0});
    }
  }
  SECTION("a group on hold counts as not attached") {
    world.state.groups[0].hold = true;
    CHECK(Slices(world.At(kNow)) == Expected{0, 20'000, 200, 0});
    world.state.groups[1].hold = true;
    CHECK(Slices(world.At(kNow)) == Expected{0, 0, 0, 0});
  }
  SECTION("switched off, no client has a slice") {
    world.state.settings.time_slices = false;
    CHECK(Slices(world.At(kNow)) == Expected{0, 0, 0, 0});
  }
  SECTION("fifo has none") {
    world.state.settings.name = Name::kFifo;
    CHECK(Slices(world.At(kNow)) == Expected{0, 0, 0, 0});
  }
}

TEST_CASE("slices: a group has the driver's own while the guard opens it") {
  World world(1, 1);
  world.Add(1, 50, 0, true);
  world.Add(2, 0, 0, true);
  CHECK(Slices(world.At(kNow)) == Expected{20'000, 200});
  const std::uint64_t slot = world.state.settings.guard_ms_per_s * kNsPerMs;
  const std::uint64_t due = kNow + kNsPerS - slot;
  const Decision decision = world.At(due);
  REQUIRE(decision.gates[1].why == Why::kGuard);
  CHECK(Slices(decision) == Expected{20'000, 0});
  CHECK(Slices(world.At(due + slot)) == Expected{20'000, 200});
}

TEST_CASE("slices: a group that lets those below run has a long one if it is alone above all others") {
  World world(1, 1);
  world.state.settings.tolerance_percent = 5;
  world.Add(1, 20, 0, true);
  world.Add(2, 0, 0, true);
  world.At(kNow);
  const auto settle = [&world](std::size_t group, BenefitMemory::Mode mode) {
    world.state.groups[group].memory.benefit.Use().settled = mode;
    world.state.groups[group].memory.benefit.Use().next_trial_ns = kNow + 100 * kNsPerS;
  };
  settle(0, BenefitMemory::Mode::kFree);
  CHECK(Slices(world.At(kNow + 1)) == Expected{20'000, 0});
  SECTION("whether or not it is busy") {
    world.state.tenants[0].busy = false;
    world.state.tenants[0].idle_since_ns = kNow + 1;
    CHECK(Slices(world.At(kNow + 2)) == Expected{20'000, 0});
  }
  SECTION("with a deadline only where that needs more than the others' good will") {
    world.state.tenants[0].deadline_after_ns = 40 * kNsPerMs;
    CHECK(Slices(world.At(kNow + 2)) == Expected{0, 0});
    settle(0, BenefitMemory::Mode::kBesideWide);
    CHECK(Slices(world.At(kNow + 3)) == Expected{20'000, 0});
  }
  SECTION("an equal takes it away") {
    world.Add(3, 20, 0, false);
    world.At(kNow + 2);
    settle(0, BenefitMemory::Mode::kFree);
    settle(2, BenefitMemory::Mode::kFree);
    CHECK(Slices(world.At(kNow + 3))[0] == 0);
  }
  SECTION("a more important one takes it away, though it is idle") {
    world.Add(3, 50, 0, false);
    world.At(kNow + 2);
    settle(2, BenefitMemory::Mode::kFree);
    CHECK(Slices(world.At(kNow + 3))[0] == 0);
  }
  SECTION("nobody is below") {
    world.state.tenants.pop_back();
    CHECK(Slices(world.At(kNow + 2)) == Expected{0});
  }
}

TEST_CASE("slices: a group that lets those below run has the driver's own where another may overtake it") {
  World world(1, 1);
  world.state.settings.tolerance_percent = 5;
  world.Add(1, 50, 0, true);
  world.Add(2, 20, 0, true);
  world.Add(3, 0, 0, true);
  CHECK(Slices(world.At(kNow)) == Expected{20'000, 200, 200});
  world.state.groups[1].memory.benefit.Use().settled = BenefitMemory::Mode::kBeside;
  world.state.groups[1].memory.benefit.Use().next_trial_ns = kNow + kNsPerS;
  CHECK(Slices(world.At(kNow + 1)) == Expected{20'000, 0, 200});
}

TEST_CASE("slices: beside a group, as its mode says") {
  const struct {
    BenefitMemory::Mode mode;
    std::uint32_t us;
  } rows[] = {{BenefitMemory::Mode::kWaitsNarrow, 0},
              {BenefitMemory::Mode::kWaitsWide, 0},
              {BenefitMemory::Mode::kBeside, 1'000},
              {BenefitMemory::Mode::kBesideWide, 0},
              {BenefitMemory::Mode::kFree, 0}};
  for (const auto& row : rows) {
    INFO("mode " << ModeText(row.mode));
    World world(1, 1);
    world.state.settings.tolerance_percent = 5;
    world.Add(1, 20, 0, true);
    world.Add(2, 0, 0, true);
    world.At(kNow);
    world.state.groups[0].memory.benefit.Use().settled = row.mode;
    world.state.groups[0].memory.benefit.Use().next_trial_ns = kNow + 100 * kNsPerS;
    CHECK(Slices(world.At(kNow + 1)) == Expected{20'000, row.us});
    world.Add(3, 0, 0, true);
    CHECK(Slices(world.At(kNow + 2)) == Expected{20'000, row.us, row.us});
  }
}

TEST_CASE("slices: those beside a group have what its mode says as long as it has recent work") {
  World world(1, 1);
  world.state.settings.tolerance_percent = 5;
  world.Add(1, 50, 0, false);
  world.Add(2, 20, 0, true);
  world.Add(3, 0, 0, true);
  world.Add(4, 0, 0, true);
  world.At(kNow);
  world.state.groups[1].memory.benefit.Use().settled = BenefitMemory::Mode::kBeside;
  world.state.groups[1].memory.benefit.Use().next_trial_ns = kNow + 100 * kNsPerS;
  // The first one holds, but has never had any work.
  CHECK(Slices(world.At(kNow + 1)) == Expected{20'000, 0, 1'000, 1'000});
  const auto pause = [&](std::size_t index, std::uint64_t at_ns) {
    world.state.tenants[index].busy = false;
    world.state.tenants[index].idle_since_ns = at_ns;
  };
  SECTION("it stops") {
    pause(1, kNow + 2);
    const Decision paused = world.At(kNow + 2);
    CHECK(Slices(paused) == Expected{20'000, 0, 1'000, 1'000});
    CHECK(paused.next_decision_ns <= kNow + 2 + kNsPerS);
    CHECK(Slices(world.At(kNow + 2 + kNsPerS)) == Expected{20'000, 0, 200, 200});
  }
  SECTION("a group that holds has work") {
    world.state.tenants[0].busy = true;
    CHECK(Slices(world.At(kNow + 2)) == Expected{20'000, 0, 200, 200});
  }
  SECTION("no attached group holds at all") {
    world.state.tenants.erase(world.state.tenants.begin());
    CHECK(Slices(world.At(kNow + 2)) == Expected{20'000, 1'000, 1'000});
  }
}

TEST_CASE("slices: equals have the driver's own") {
  World world(1);
  world.Add(1, 0, 0, true);
  world.Add(2, 0, 0, true);
  CHECK(Slices(world.At(kNow)) == Expected{0, 0});
  // Kept to shares, but no group overtakes.
  world.state.settings.name = Name::kShare;
  CHECK(Slices(world.At(kNow)) == Expected{0, 0});
}
