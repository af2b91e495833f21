// fifo as a table.
#include "tests/unit/daemon/policy_world.h"

using namespace xschedd::policy;
using namespace xschedd::policy::test;

TEST_CASE("fifo: all are open and untracked, except for holds") {
  World world(1, 1);
  world.state.settings.name = Name::kFifo;
  world.Add(1, 50, 0, true);
  world.Add(2, 0, 0, true);
  world.Add(3, 0, 0, true, true);
  const Decision decision = world.At(kNow);
  CHECK(Letters(decision) == "--H");
  CHECK(decision.gates[2].why == Why::kHold);
  CHECK(decision.next_decision_ns == kNever);
}

TEST_CASE("fifo forgets what other policies remembered, and they start again") {
  World world(1);
  world.state.settings.name = Name::kShare;
  world.Add(1, 0, 0, true).ran_ns = 20 * kNsPerMs;
  world.Add(2, 0, 0, true);
  world.At(kNow);
  world.state.tenants[0].ran_ns = 20 * kNsPerMs;
  CHECK(Letters(world.At(kNow + 20 * kNsPerMs)) == "Ho");
  world.state.settings.name = Name::kFifo;
  CHECK(Letters(world.At(kNow + 21 * kNsPerMs)) == "--");
  world.state.settings.name = Name::kShare;
  CHECK(Letters(world.At(kNow + 22 * kNsPerMs)) == "oo");
}
