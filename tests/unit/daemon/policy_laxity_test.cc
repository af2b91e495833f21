// laxity as a table: which work has slack, and when it has none left.
#include "tests/unit/daemon/policy_world.h"

using namespace xschedd::policy;
using namespace xschedd::policy::test;

namespace {

// Due in 33 ms, needs 10: with a margin of 2 ms its slack ends after 21.
World FramesBesideBatch() {
  World world(1);
  world.state.settings.name = Name::kLaxity;
  world.state.settings.laxity_margin_us = 2'000;
  Tenant& frames = world.Add(1, 0, 0, true);
  frames.busy_since_ns = kNow;
  frames.deadline_ns = kNow + 33 * kNsPerMs;
  frames.deadline_after_ns = 33 * kNsPerMs;
  frames.usual_ns = 10 * kNsPerMs;
  world.Add(2, 0, 0, true);
  return world;
}

}  // namespace

TEST_CASE("laxity: work with slack runs after all others, work without before them") {
  World world = FramesBesideBatch();
  Decision decision = world.At(kNow);
  CHECK(Letters(decision) == "Ho");
  CHECK(decision.gates[0].why == Why::kDeadline);
  CHECK(decision.gates[0].held_for == 200);
  CHECK(decision.next_decision_ns == kNow + 21 * kNsPerMs);
  CHECK(Letters(world.At(kNow + 21 * kNsPerMs - 1)) == "Ho");
  decision = world.At(kNow + 21 * kNsPerMs);
  CHECK(Letters(decision) == "oH");
  CHECK(decision.gates[1].why == Why::kDeadline);
  CHECK(decision.gates[1].held_for == 100);

  SECTION("urgent work stays urgent while it runs, and when it is late") {
    world.state.tenants[0].burst_ns = 9 * kNsPerMs;
    CHECK(Letters(world.At(kNow + 22 * kNsPerMs)) == "oH");
    CHECK(Letters(world.At(kNow + 100 * kNsPerMs)) == "oH");
  }
  SECTION("an unseen pause: only the deadline differs") {
    world.state.tenants[0].deadline_ns += 22 * kNsPerMs;
    CHECK(Letters(world.At(kNow + 22 * kNsPerMs)) == "oH");
    CHECK(Letters(world.At(kNow + 23 * kNsPerMs)) == "oH");
  }
  SECTION("a pause in urgent work") {
    world.state.settings.linger_us = 200;
    Tenant& frames = world.state.tenants[0];
    frames.busy = false;
    frames.idle_since_ns = kNow + 22 * kNsPerMs;
    decision = world.At(frames.idle_since_ns);
    CHECK(Letters(decision) == "oH");
    CHECK(decision.gates[1].why == Why::kLinger);
    CHECK(decision.next_decision_ns == frames.idle_since_ns + 200 * kNsPerUs);
    CHECK(Letters(world.At(frames.idle_since_ns + 200 * kNsPerUs)) == "Ho");  // no client waits longer
    frames.busy = true;
    SECTION("shorter than the margin: the work goes on") {
      frames.busy_since_ns = frames.idle_since_ns + 2 * kNsPerMs - 1;
      frames.deadline_ns = frames.busy_since_ns + 33 * kNsPerMs;
      CHECK(Letters(world.At(frames.busy_since_ns)) == "oH");
      CHECK(Letters(world.At(frames.busy_since_ns + kNsPerMs)) == "oH");
    }
    SECTION("not shorter: it is other work") {
      frames.busy_since_ns = frames.idle_since_ns + 2 * kNsPerMs;
      frames.deadline_ns = frames.busy_since_ns + 33 * kNsPerMs;
      CHECK(Letters(world.At(frames.busy_since_ns)) == "Ho");
    }
  }
  SECTION("the next work has its own slack") {
    world.state.tenants[0].busy = false;
    CHECK(Letters(world.At(kNow + 31 * kNsPerMs)) == "Ho");
    Tenant& frames = world.state.tenants[0];
    frames.busy = true;
    frames.burst_ns = 0;
    frames.deadline_ns = kNow + 66 * kNsPerMs;
    decision = world.At(kNow + 33 * kNsPerMs);
    CHECK(Letters(decision) == "Ho");
    CHECK(decision.next_decision_ns == kNow + 54 * kNsPerMs);
  }
}

TEST_CASE("laxity: what the slack depends on") {
  World world = FramesBesideBatch();
  SECTION("what was done in the background need not be done again") {
    world.state.tenants[0].burst_ns = 8 * kNsPerMs;
    CHECK(world.At(kNow).next_decision_ns == kNow + 29 * kNsPerMs);
  }
  SECTION("nothing known: urgent at once") {
    world.state.tenants[0].usual_ns = 0;
    CHECK(Letters(world.At(kNow)) == "oH");
  }
  SECTION("a larger margin: urgent earlier") {
    world.state.settings.laxity_margin_us = 5'000;
    CHECK(world.At(kNow).next_decision_ns == kNow + 18 * kNsPerMs);
  }
  SECTION("no other client has work: it runs, and can be overtaken") {
    world.state.tenants[1].busy = false;
    const Decision decision = world.At(kNow);
    CHECK(Letters(decision) == "oo");
    CHECK(decision.gates[0].window_us == 500);
    CHECK(decision.gates[1].window_us == 500);
  }
  SECTION("priority comes first") {
    world.state.groups[1].priority = 1;
    const Decision decision = world.At(kNow + 22 * kNsPerMs);
    CHECK(Letters(decision) == "Ho");
    CHECK(decision.gates[0].why == Why::kPriority);
  }
}

TEST_CASE("laxity: among urgent groups the earliest latest start runs first") {
  World world = FramesBesideBatch();
  Tenant& other = world.Add(3, 0, 0, true);
  other.deadline_ns = kNow + 32 * kNsPerMs;  // due earlier, but may begin later
  other.deadline_after_ns = 32 * kNsPerMs;
  other.usual_ns = 5 * kNsPerMs;
  CHECK(Letters(world.At(kNow)) == "HoH");
  CHECK(Letters(world.At(kNow + 21 * kNsPerMs)) == "oHH");
  CHECK(Letters(world.At(kNow + 26 * kNsPerMs)) == "oHH");
  // Progress does not change their order.
  world.state.tenants[0].burst_ns = 9 * kNsPerMs;
  CHECK(Letters(world.At(kNow + 30 * kNsPerMs)) == "oHH");
  world.state.tenants[0].busy = false;
  CHECK(Letters(world.At(kNow + 31 * kNsPerMs)) == "HHo");
}

TEST_CASE("laxity: without deadlines it acts as priority") {
  World world(1);
  world.state.settings.name = Name::kLaxity;
  world.Add(1, 0, 0, true);
  world.Add(2, 0, 0, true);
  CHECK(Letters(world.At(kNow)) == "--");
}
