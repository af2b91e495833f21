// fair as a table: how much GPU time each group has had, and which runs first.
#include "tests/unit/daemon/policy_world.h"

using namespace xschedd::policy;
using namespace xschedd::policy::test;

namespace {

// Two groups with work, and one with the given GPU time.
class FairWorld : public World {
 public:
  FairWorld() : World(1) {
    state.settings.name = Name::kFair;
    Add(1, 0, 0, true);
    Add(2, 0, 0, true);
    At(kNow);
  }
  Decision After(std::uint64_t ms, std::uint64_t first_ran_ms, std::uint64_t second_ran_ms) {
    now_ns += ms * kNsPerMs;
    state.tenants[0].ran_ns = first_ran_ms * kNsPerMs;
    state.tenants[1].ran_ns = second_ran_ms * kNsPerMs;
    return At(now_ns);
  }
  std::uint64_t now_ns = kNow;
};

}  // namespace

TEST_CASE("fair: the group with less GPU time runs first, level by level") {
  // Attained before, in ms: quantum 20, so the levels begin at 0, 20, 100 and 420.
  struct {
    std::uint64_t first, second;
    const char* expected;
  } const rows[] = {{0, 0, "oo"},     {19, 0, "oo"},    {20, 0, "Ho"},     {99, 20, "oo"}, {100, 99, "Ho"},
                    {419, 100, "oo"}, {420, 419, "Ho"}, {5000, 420, "oo"}, {20, 420, "oH"}};
  for (const auto& row : rows) {
    INFO(row.first << " beside " << row.second);
    FairWorld world;
    const Decision decision = world.After(1000, row.first, row.second);
    CHECK(Letters(decision) == row.expected);
    for (const Gate& gate : decision.gates)
      CHECK((!gate.held || gate.why == Why::kFair));
  }
}

TEST_CASE("fair: a group is held until the other has had as much") {
  FairWorld world;
  Decision decision = world.After(20, 20, 0);
  CHECK(Letters(decision) == "Ho");
  CHECK(decision.gates[0].held_for == 200);
  CHECK(decision.next_decision_ns == world.now_ns + 20 * kNsPerMs);
  CHECK(Letters(world.After(19, 0, 19)) == "Ho");
  CHECK(Letters(world.After(1, 0, 1)) == "oo");
}

TEST_CASE("fair: idleness takes off GPU time; waiting does not") {
  FairWorld world;
  CHECK(Letters(world.After(100, 50, 0)) == "Ho");
  SECTION("waiting") {
    CHECK(Letters(world.After(200, 0, 0)) == "Ho");
  }
  SECTION("idle for long enough") {
    world.state.tenants[0].busy = false;
    world.state.tenants[0].idle_since_ns = world.now_ns;
    world.After(1, 0, 0);
    world.After(31, 0, 0);
    world.state.tenants[0].busy = true;
    CHECK(Letters(world.After(0, 0, 0)) == "oo");
  }
  SECTION("idle too briefly") {
    world.state.tenants[0].busy = false;
    world.After(1, 0, 0);
    world.After(20, 0, 0);
    world.state.tenants[0].busy = true;
    CHECK(Letters(world.After(0, 0, 0)) == "Ho");
  }
}

TEST_CASE("fair: a tenant of requests stays on the first level, whatever it has used in all") {
  FairWorld world;
  for (int request = 0; request < 200; ++request) {
    world.state.tenants[0].busy = true;
    const Decision decision = world.After(20, 0, 20);
    CHECK(!decision.gates[0].held);
    world.state.tenants[0].busy = false;
    world.After(15, 15, 0);
  }
  CHECK(world.state.groups[0].memory.fair.attained_ns < 20 * kNsPerMs);
  CHECK(world.state.groups[1].memory.fair.attained_ns == 840 * kNsPerMs);  // no more is remembered
}

TEST_CASE("fair: the owner whose groups have had least together runs first, then the group that has had least") {
  struct {
    std::vector<std::uint32_t> owners;
    std::vector<std::uint64_t> had_ms;
    const char* expected;
  } const rows[] = {
      {{0, 0, 1}, {12, 12, 19}, "HHo"},
      {{kNoOwner, kNoOwner, kNoOwner}, {12, 12, 19}, "ooo"},
      {{0, 0, 1}, {9, 9, 19}, "ooo"},
      // Inside an owner, and between owners on one level, each group's own GPU time decides.
      {{0, 0, 0}, {12, 12, 25}, "ooH"},
      {{0, 0, 1}, {21, 12, 25}, "HoH"},
      {{0, 0, 1}, {60, 60, 99}, "HHo"},
  };
  for (const auto& row : rows) {
    World world(1);
    world.state.settings.name = Name::kFair;
    for (std::size_t i = 0; i < row.owners.size(); ++i) {
      world.Add(i + 1, 0, 0, true);
      world.state.groups[i].owner = row.owners[i];
    }
    world.At(kNow);
    for (std::size_t i = 0; i < row.owners.size(); ++i)
      world.state.tenants[i].ran_ns = row.had_ms[i] * kNsPerMs;
    INFO("row " << &row - rows);
    CHECK(Letters(world.At(kNow + kNsPerS)) == row.expected);
  }
}

TEST_CASE("fair: a group that has no work does not count for its owner") {
  World world(1);
  world.state.settings.name = Name::kFair;
  for (const std::uint64_t group : {1, 2, 3})
    world.Add(group, 0, 0, true);
  world.state.groups[0].owner = world.state.groups[1].owner = 0;
  world.state.groups[2].owner = 1;
  world.At(kNow);
  world.state.tenants[0].ran_ns = world.state.tenants[1].ran_ns = 12 * kNsPerMs;
  CHECK(Letters(world.At(kNow + 24 * kNsPerMs)) == "HHo");
  world.state.tenants[1].busy = false;
  world.state.tenants[1].idle_since_ns = kNow + 24 * kNsPerMs;
  CHECK(Letters(world.At(kNow + 24 * kNsPerMs)) == "oHo");
}

TEST_CASE("fair: windows, tracking and priority") {
  FairWorld world;
  world.After(20, 20, 0);
  world.state.tenants[1].busy = false;
  // The idle group would begin on a level above it.
  Decision decision = world.After(1, 0, 0);
  CHECK(Letters(decision) == "oo");
  CHECK(decision.gates[0].window_us == 500);
  CHECK(decision.gates[1].window_us == 20'000);
  world.state.tenants[1].busy = true;
  world.state.groups[0].priority = 1;
  decision = world.After(1, 0, 0);
  CHECK(Letters(decision) == "oH");
  CHECK(decision.gates[1].why == Why::kPriority);
}

TEST_CASE("fair: a gang is charged for its busiest device") {
  World world(2);
  world.state.settings.name = Name::kFair;
  world.Add(1, 0, 0, true);
  world.Add(1, 0, 1, true);
  world.Add(2, 0, 0, true);
  world.At(kNow);
  world.state.tenants[0].ran_ns = 15 * kNsPerMs;
  world.state.tenants[1].ran_ns = 15 * kNsPerMs;
  CHECK(Letters(world.At(kNow + 15 * kNsPerMs)) == "ooo");
  world.state.tenants[1].ran_ns = 5 * kNsPerMs;
  const Decision decision = world.At(kNow + 20 * kNsPerMs);
  CHECK(Letters(decision) == "HHo");
  CHECK(decision.gates[1].why == Why::kGang);
}
