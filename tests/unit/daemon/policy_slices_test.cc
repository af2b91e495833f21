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
      {{.enabled = true, .tracked = true, .can_be_held = true, .somebody_can_be = true}, kShortSliceUs},
      {{.enabled = true, .tracked = true, .can_be_held = false, .somebody_can_be = true}, kLongSliceUs},
      {{.enabled = true, .tracked = true, .can_be_held = false, .somebody_can_be = false}, 0},
      {{.enabled = true, .tracked = false, .can_be_held = true, .somebody_can_be = true}, 0},
      {{.enabled = true, .tracked = false, .can_be_held = false, .somebody_can_be = true}, 0},
      {{.enabled = false, .tracked = true, .can_be_held = true, .somebody_can_be = true}, 0},
      {{.enabled = false, .tracked = true, .can_be_held = false, .somebody_can_be = true}, 0},
  };
  for (const auto& [of, us] : cases)
    CHECK(SliceOf(of) == us);
}

TEST_CASE("slices: short for who can be overtaken, busy or not, held or not; long for who cannot") {
  World world(2);
  world.Add(1, 50, 0, true);
  world.Add(2, 0, 0, true);
  world.Add(3, -10, 0, false);
  world.Add(4, 0, 1, true);  // alone on the other device
  CHECK(Letters(world.At(kNow)) == "oHH-");
  CHECK(Slices(world.At(kNow)) == Expected{20'000, 200, 200, 0});
  world.state.tenants[0].busy = false;
  CHECK(Letters(world.At(kNow)) == "ooH-");
  CHECK(Slices(world.At(kNow)) == Expected{20'000, 200, 200, 0});
  SECTION("with max_concurrent, who waits for a turn has it, too") {
    world.state.settings.max_concurrent = 1;
    CHECK(Slices(world.At(kNow)) == Expected{20'000, 200, 200, 0});
  }
  SECTION("whom an administrator holds is as nobody") {
    world.state.groups[0].hold = true;
    CHECK(Slices(world.At(kNow)) == Expected{0, 20'000, 200, 0});
    world.state.groups[1].hold = true;
    CHECK(Slices(world.At(kNow)) == Expected{0, 0, 0, 0});
  }
  SECTION("switched off, nobody has any") {
    world.state.settings.time_slices = false;
    CHECK(Slices(world.At(kNow)) == Expected{0, 0, 0, 0});
  }
  SECTION("fifo has none") {
    world.state.settings.name = Name::kFifo;
    CHECK(Slices(world.At(kNow)) == Expected{0, 0, 0, 0});
  }
}

TEST_CASE("slices: equals have the driver's own") {
  World world(1);
  world.Add(1, 0, 0, true);
  world.Add(2, 0, 0, true);
  CHECK(Slices(world.At(kNow)) == Expected{0, 0});
  // Kept to shares, but nobody overtakes.
  world.state.settings.name = Name::kShare;
  CHECK(Slices(world.At(kNow)) == Expected{0, 0});
}
