// The policies as tables: who is attached and busy, and which gates follow. Pure, so time is a number here.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "daemon/policy/decide.h"
#include "tests/catch.h"

using namespace xschedd::policy;

namespace {

constexpr std::uint64_t kNow = 1'000 * kNsPerS;

// One client on one device; client ids are group * 100 + device, so that a table is readable.
struct Row {
  std::uint64_t group;
  int priority;
  std::uint32_t device;
  bool busy;
  // Expected: '-' untracked, 'o' open and tracked, 'H' held.
  char expected;
  Why why = Why::kOpen;
  bool hold = false;
};

class World {
 public:
  explicit World(std::uint32_t devices, std::uint32_t default_concurrent = 0) {
    state.devices.assign(devices, {default_concurrent});
    state.settings.linger_us = 0;
  }

  Tenant& Add(std::uint64_t group, int priority, std::uint32_t device, bool busy, bool hold = false) {
    std::size_t index = 0;
    while (index < state.groups.size() && state.groups[index].id != group)
      ++index;
    if (index == state.groups.size()) state.groups.push_back({.id = group, .priority = priority});
    state.groups[index].hold = state.groups[index].hold || hold;
    state.tenants.push_back({group * 100 + device, static_cast<std::uint32_t>(index), device, busy, 0});
    return state.tenants.back();
  }

  // Decides, and keeps the memory for the next time.
  Decision At(std::uint64_t now) {
    Decision decision = Decide(state, now);
    REQUIRE(decision.gates.size() == state.tenants.size());
    REQUIRE(decision.memory.size() == state.groups.size());
    for (std::size_t i = 0; i < state.groups.size(); ++i)
      state.groups[i].memory = decision.memory[i];
    CHECK(decision.next_look_ns > now);
    return decision;
  }

  State state;
};

char Letter(const Gate& gate) {
  return gate.held ? 'H' : gate.tracked ? 'o' : '-';
}

std::string Letters(const Decision& decision) {
  std::string letters;
  for (const Gate& gate : decision.gates)
    letters += Letter(gate);
  return letters;
}

void Check(const char* name, const std::vector<Row>& rows, std::uint32_t default_concurrent = 0) {
  INFO(name);
  World world(4, default_concurrent);
  for (const Row& row : rows)
    world.Add(row.group, row.priority, row.device, row.busy, row.hold);
  const Decision decision = world.At(kNow);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO("row " << i);
    CHECK(std::string(1, Letter(decision.gates[i])) == std::string(1, rows[i].expected));
    CHECK(static_cast<int>(decision.gates[i].why) == static_cast<int>(rows[i].why));
  }
}

}  // namespace

TEST_CASE("priority: who is open") {
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

TEST_CASE("priority: an administrator's hold") {
  Check("held whatever its priority; nobody waits for it",
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
  CHECK(decision.next_look_ns == kNow + turn);
  CHECK(Letters(world.At(kNow + turn - 1)) == "ooHH");
  CHECK(Letters(world.At(kNow + turn)) == "oHoH");
  CHECK(Letters(world.At(kNow + 2 * turn)) == "oHHo");
  CHECK(Letters(world.At(kNow + 3 * turn)) == "ooHH");

  SECTION("a tenant that becomes idle gives its turn back at once") {
    world.state.tenants[1].busy = false;
    CHECK(Letters(world.At(kNow + 3 * turn + 1)) == "oHoH");
  }
  SECTION("a turn goes on after the important one's work") {
    world.state.tenants[0].busy = true;
    CHECK(Letters(world.At(kNow + 3 * turn + 1)) == "oHHH");
    world.state.tenants[0].busy = false;
    CHECK(Letters(world.At(kNow + 3 * turn + 2)) == "ooHH");
  }
  SECTION("nobody waits: the turn has no end") {
    world.state.tenants[2].busy = false;
    world.state.tenants[3].busy = false;
    CHECK(world.At(kNow + 3 * turn + 1).next_look_ns == kNever);
    CHECK(Letters(world.At(kNow + 50 * turn)) == "ooHH");
  }
  SECTION("max_concurrent goes before the device's default") {
    world.state.settings.max_concurrent = 2;
    CHECK(Letters(world.At(kNow + 3 * turn + 1)) == "oooH");
    world.state.settings.max_concurrent = 0;
    CHECK(Letters(world.At(kNow + 3 * turn + 2)) == "oooo");
  }
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

TEST_CASE("priority: those at the top divide their window, and have none among equals") {
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
  CHECK(decision.next_look_ns == kNow + 200 * kNsPerUs);
  decision = world.At(kNow + 200 * kNsPerUs);
  CHECK(Letters(decision) == "oo");
  CHECK(decision.next_look_ns == kNever);
}

TEST_CASE("priority: the starvation guard") {
  World world(1);
  world.Add(1, 50, 0, true);
  world.Add(2, 0, 0, true);
  const std::uint64_t turn = world.state.settings.guard_ms_per_s * kNsPerMs;
  Decision decision = world.At(kNow);
  CHECK(Letters(decision) == "oH");
  const std::uint64_t due = kNow + kNsPerS - turn;
  CHECK(decision.next_look_ns == due);
  CHECK(Letters(world.At(due - 1)) == "oH");
  decision = world.At(due);
  CHECK(Letters(decision) == "oo");
  CHECK(decision.gates[1].why == Why::kGuard);
  CHECK(decision.gates[1].window_us == 500);
  CHECK(decision.next_look_ns == due + turn);

  SECTION("the turn ends, the next comes a second later") {
    decision = world.At(due + turn);
    CHECK(Letters(decision) == "oH");
    CHECK(decision.next_look_ns == due + kNsPerS);
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
    CHECK(decision.next_look_ns == kNever);
    CHECK(Letters(world.At(due + 100 * kNsPerS)) == "oH");
  }
}

TEST_CASE("priority: guard turns keep to the number of tenants that a device runs at a time") {
  World world(1, 1);
  world.Add(1, 50, 0, true);
  world.Add(2, 0, 0, true);
  world.Add(3, 0, 0, true);
  const std::uint64_t turn = world.state.settings.guard_ms_per_s * kNsPerMs;
  const std::uint64_t due = kNow + kNsPerS - turn;
  CHECK(Letters(world.At(kNow)) == "oHH");
  CHECK(Letters(world.At(due)) == "ooH");
  CHECK(Letters(world.At(due + turn)) == "oHo");
  CHECK(Letters(world.At(due + 2 * turn)) == "oHH");
}

TEST_CASE("fifo: all open, but for holds") {
  World world(1);
  world.state.settings.name = Name::kFifo;
  world.Add(1, 50, 0, true);
  world.Add(2, 0, 0, true);
  world.Add(3, 0, 0, true, true);
  CHECK(Letters(world.At(kNow)) == "--H");
}

TEST_CASE("a decision does not depend on the order in which things are listed") {
  std::mt19937 random(4711);
  for (int round = 0; round < 300; ++round) {
    World world(4, round % 3);
    world.state.settings.linger_us = 200;
    for (std::uint64_t group = 1; group <= 8; ++group) {
      const int priority = static_cast<int>(random() % 3) * 10;
      for (std::uint32_t device = 0; device < 4; ++device) {
        if (random() % 2 == 0) continue;
        world.Add(group, priority, device, random() % 2 == 0, random() % 20 == 0).idle_since_ns =
            random() % 2 == 0 ? kNow - 100 : 0;
      }
    }
    const Decision straight = Decide(world.state, kNow);
    State shuffled = world.state;
    std::vector<std::size_t> order(shuffled.tenants.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t i = 0; i < order.size(); ++i)
      shuffled.tenants[i] = world.state.tenants[order[i]];
    const Decision other = Decide(shuffled, kNow);
    for (std::size_t i = 0; i < order.size(); ++i)
      REQUIRE(other.gates[i] == straight.gates[order[i]]);
    REQUIRE(other.memory == straight.memory);
    REQUIRE(other.next_look_ns == straight.next_look_ns);

    // And in every world: a busy open group without a guard turn is not below another busy open one on its device, and
    // no group is open in one place and held in another where it is busy.
    for (std::size_t a = 0; a < world.state.tenants.size(); ++a) {
      const Tenant& one = world.state.tenants[a];
      if (!one.busy || straight.gates[a].held) continue;
      for (std::size_t b = 0; b < world.state.tenants.size(); ++b) {
        const Tenant& two = world.state.tenants[b];
        if (!two.busy) continue;
        if (one.group == two.group) REQUIRE(!straight.gates[b].held);
        if (one.device != two.device || straight.gates[b].held) continue;
        REQUIRE(world.state.groups[one.group].priority == world.state.groups[two.group].priority);
      }
    }
  }
}
