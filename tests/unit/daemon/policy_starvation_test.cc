// No client with work waits for ever, and the cost to more important clients is bounded, however many wait: turns,
// gangs that need several devices at once, and the guard's slots.
#include <algorithm>
#include <map>
#include <set>

#include "daemon/policy/slices.h"
#include "tests/unit/daemon/policy_world.h"

using namespace xschedd::policy;
using namespace xschedd::policy::test;

namespace {

// Groups that always have work, unless a test says otherwise; advances from event to event.
class Run {
 public:
  explicit Run(World& world) : world_(world) {}

  // Runs until `end_ns`, deciding whenever the last decision asked for it.
  void Until(std::uint64_t end_ns) {
    while (now_ns < end_ns) {
      const Decision decision = world_.At(now_ns);
      const std::uint64_t next = std::min(decision.next_decision_ns, end_ns);
      for (std::size_t i = 0; i < world_.state.tenants.size(); ++i) {
        Tenant& tenant = world_.state.tenants[i];
        const bool runs = tenant.busy && !decision.gates[i].held;
        const std::uint64_t id = world_.state.groups[tenant.group].id;
        if (runs) open_ns[tenant.client] += next - now_ns;
        if (runs && !idlers.contains(id)) tenant.ran_ns = next - now_ns;
        if (!runs) continue;
        const std::uint64_t last = last_open_ns.try_emplace(id, now_ns).first->second;
        longest_wait_ns[id] = std::max(longest_wait_ns[id], now_ns - last);
        last_open_ns[id] = next;
      }
      for (std::uint32_t device = 0; device < world_.state.devices.size(); ++device) {
        bool guarded = false;
        for (std::size_t i = 0; i < world_.state.tenants.size(); ++i)
          guarded = guarded || (world_.state.tenants[i].device == device && decision.gates[i].why == Why::kGuard);
        if (guarded) guarded_ns[device] += next - now_ns;
      }
      now_ns = next;
    }
  }

  std::uint64_t now_ns = kNow;
  std::set<std::uint64_t> idlers;                          // groups that are busy and do not use their devices
  std::map<std::uint64_t, std::uint64_t> open_ns;          // by client
  std::map<std::uint64_t, std::uint64_t> last_open_ns;     // by group
  std::map<std::uint64_t, std::uint64_t> longest_wait_ns;  // by group
  std::map<std::uint32_t, std::uint64_t> guarded_ns;       // by device

 private:
  World& world_;
};

}  // namespace

TEST_CASE("a gang gets its turn on devices whose turns end at different times") {
  for (const std::string_view name : {"priority", "deadline", "laxity", "fair", "share"}) {
    INFO(name);
    World world(2, 1);
    world.state.settings.name = *NameFrom(name);
    world.state.settings.guard_ms_per_s = 0;
    world.Add(9, 50, 0, false);
    world.Add(9, 50, 1, false);
    world.Add(1, 0, 0, true);
    Run run(world);
    run.Until(kNow + 6 * kNsPerMs);  // so the turns of 1 and 2 begin 6 ms apart
    world.Add(2, 0, 1, true);
    run.Until(kNow + 7 * kNsPerMs);
    world.Add(3, 0, 0, true);
    world.Add(3, 0, 1, true);
    run.open_ns.clear();
    run.Until(kNow + 60 * kNsPerS);
    // The gang and each of the others want a device for half of the time; no device is idle.
    CHECK(run.open_ns[300] == run.open_ns[301]);
    CHECK(run.open_ns[300] > 24 * kNsPerS);
    CHECK(run.open_ns[100] > 24 * kNsPerS);
    CHECK(run.open_ns[201] > 24 * kNsPerS);
    CHECK(run.open_ns[300] + run.open_ns[100] >= 60 * kNsPerS - 7 * kNsPerMs);
    CHECK(run.open_ns[301] + run.open_ns[201] >= 60 * kNsPerS - 7 * kNsPerMs);
  }
}

TEST_CASE("with many turns, no group waits for longer than the others' turns") {
  World world(1, 1);
  world.Add(100, 50, 0, false);
  for (std::uint64_t group = 1; group <= 60; ++group)
    world.Add(group, 0, 0, true);
  Run run(world);
  run.Until(kNow + 60 * kNsPerS);
  const std::uint64_t turn = world.state.settings.turn_ms * kNsPerMs;
  for (std::uint64_t group = 1; group <= 60; ++group) {
    INFO(group);
    CHECK(run.open_ns[group * 100] >= 60 * kNsPerS / 60);
    CHECK(run.longest_wait_ns[group] <= 59 * turn);
  }
}

TEST_CASE("what the guard takes from the important client does not grow with the number that wait") {
  for (const std::uint32_t limit : {0u, 1u}) {
    for (const std::uint64_t count : {1u, 10u, 50u, 150u}) {
      INFO(count << " groups, limit " << limit);
      World world(1, limit);
      world.Add(1000, 50, 0, true);
      Run run(world);
      for (std::uint64_t i = 1; i <= count; ++i) {
        world.Add(i, 0, 0, true);
        run.last_open_ns[i] = run.now_ns;
        run.Until(kNow + i * 20 * kNsPerMs);  // staggered: as 50 users come
      }
      const std::uint64_t seconds = 2 * count + 3;
      run.guarded_ns.clear();
      const std::uint64_t start = run.now_ns;
      run.Until(start + seconds * kNsPerS);
      const std::uint64_t turn = world.state.settings.guard_ms_per_s * kNsPerMs;
      CHECK(run.guarded_ns[0] <= (seconds + 1) * turn);
      CHECK(run.guarded_ns[0] >= (seconds - 2) * turn);
      for (std::uint64_t i = 1; i <= count; ++i) {
        INFO("group " << i);
        CHECK(run.open_ns[i * 100] >= turn);
        CHECK(run.longest_wait_ns[i] <= (count + 1) * kNsPerS);
      }
    }
  }
}

TEST_CASE("share: a group that does not use its turn is charged for it") {
  World world(1, 1);
  world.state.settings.name = Name::kShare;
  world.state.settings.guard_ms_per_s = 0;
  world.Add(1, 0, 0, true);
  world.Add(2, 0, 0, true);
  Run run(world);
  run.idlers = {1};
  run.Until(kNow + 10 * kNsPerS);
  CHECK(run.open_ns[200] > 2 * kNsPerS);
}

TEST_CASE("share: groups that do not use the device do not pass turns to one another for ever") {
  World world(1, 1);
  world.state.settings.name = Name::kShare;
  world.state.settings.guard_ms_per_s = 0;
  for (const std::uint64_t group : {1, 2, 3})
    world.Add(group, 0, 0, true);
  Run run(world);
  run.idlers = {1, 2};
  run.Until(kNow + 10 * kNsPerS);
  CHECK(run.open_ns[300] > 2 * kNsPerS);
}

namespace {

// Groups for which holding others was measured not to help.
void LetBeside(World& world, std::initializer_list<std::uint64_t> groups) {
  world.state.settings.tolerance_percent = 5;
  for (const std::uint64_t id : groups) {
    BenefitMemory& benefit = world.GroupOf(id, 0).memory.benefit.Use();
    benefit.mode = benefit.settled = BenefitMemory::Mode::kBeside;
    benefit.holds = false;
    benefit.next_trial_ns = kNever;
  }
}

}  // namespace

TEST_CASE("of equals that hold no others, one beside a holder on another device does not always run first") {
  World world(2, 1);
  world.state.settings.guard_ms_per_s = 0;
  world.Add(9, 20, 1, false);  // so turns are taken there
  world.Add(4, 10, 0, true);   // holds
  world.Add(2, 0, 0, true);
  world.Add(8, 10, 0, true);
  world.Add(8, 10, 1, true);
  world.Add(6, 10, 1, true);
  LetBeside(world, {6, 8});
  Run run(world);
  run.Until(kNow + 2 * kNsPerS);
  CHECK(run.open_ns[601] > 900 * kNsPerMs);
  CHECK(run.open_ns[801] > 900 * kNsPerMs);
  CHECK(run.longest_wait_ns[6] <= 2 * kNsPerMs * world.state.settings.turn_ms);
}

TEST_CASE("below a group that holds no others, no group takes turns and each has its own window") {
  for (const bool busy : {true, false}) {
    World world(1, 1);
    world.Add(9, 20, 0, busy).idle_since_ns = kNow - 2 * kNsPerS;
    world.Add(2, 0, 0, true);
    world.Add(1, 0, 0, true);
    // It may hold them: they take turns and share one window.
    const Decision held = world.At(kNow);
    CHECK(Letters(held) == (busy ? "oHH" : "oHo"));
    CHECK(held.gates[2].slice_us == kShortSliceUs);
    LetBeside(world, {9});
    const Decision beside = world.At(kNow);
    CHECK(Letters(beside) == "ooo");
    for (const std::size_t i : {1, 2}) {
      CHECK(beside.gates[i].why == (busy ? Why::kBeside : Why::kOpen));
      CHECK(beside.gates[i].window_us == 4 * world.state.settings.window_us);
      CHECK(beside.gates[i].window_floor == 2);
      CHECK(beside.gates[i].slice_us == (busy ? 1'000 : 0));
    }
    // With a group between them that may hold the lowest, the lowest take turns.
    world.Add(5, 10, 0, false);
    world.Add(3, 0, 0, true);
    const Decision below_two = world.At(kNow);
    CHECK(Letters(below_two) == "oHooH");
  }
}

TEST_CASE("a group that lets others run takes no turns, and they take theirs among themselves") {
  World world(1, 1);
  world.Add(9, 20, 0, false);  // may hold them all: turns are taken
  world.Add(4, 10, 0, false);
  world.Add(3, 0, 0, true);
  world.Add(2, 0, 0, true);
  LetBeside(world, {4});
  for (const bool busy : {false, true, false, true}) {
    world.state.tenants[1].busy = busy;
    const Decision decision = world.At(kNow);
    CHECK(Letters(decision) == "ooHo");
    CHECK(decision.gates[2].why == Why::kTurn);
    CHECK(decision.gates[3].why == (busy ? Why::kBeside : Why::kOpen));
  }
  // While it tries the other mode, it holds them.
  world.state.groups[1].memory.benefit.Use().settled = BenefitMemory::Mode::kHeld;
  CHECK(Letters(world.At(kNow + 1)) == "ooHH");
}

TEST_CASE("the guard also opens a group that waits for a turn whenever no more important group is busy") {
  // Whenever 9 pauses on device 1, it is 1's turn on device 0; whenever that ends, 9 is busy.
  World world(2, 1);
  world.Add(9, 50, 1, true);
  world.Add(9, 50, 0, false);
  world.Add(1, 0, 0, true);
  world.Add(2, 0, 0, true);
  world.Add(2, 0, 1, true);
  Run run(world);
  const std::uint64_t turn = world.state.settings.turn_ms * kNsPerMs;
  run.Until(kNow + kNsPerMs);
  while (run.now_ns < kNow + 10 * kNsPerS) {
    const std::uint64_t ends = world.state.groups[1].memory.turn_since_ns + turn;
    REQUIRE(ends > run.now_ns);
    world.state.tenants[0].busy = false;
    run.Until(ends - kNsPerMs);
    world.state.tenants[0].busy = true;
    run.Until(ends);
    run.Until(ends + kNsPerMs);
  }
  const std::uint64_t guard = world.state.settings.guard_ms_per_s * kNsPerMs;
  CHECK(run.open_ns[200] >= 9 * guard);
  CHECK(run.open_ns[200] <= 11 * guard);
  CHECK(run.open_ns[200] == run.open_ns[201]);
}

TEST_CASE("a gang needs all its devices' guard slots at once, and is not passed over") {
  // The slots of the two devices are half a second apart.
  World world(2);
  world.Add(9, 50, 0, true);
  world.Add(9, 50, 1, true);
  world.Add(1, 0, 0, true);
  Run run(world);
  run.Until(kNow + kNsPerS / 2);
  world.Add(2, 0, 1, true);
  world.Add(3, 0, 0, true);
  world.Add(3, 0, 1, true);
  run.Until(kNow + 40 * kNsPerS);
  const std::uint64_t guard = world.state.settings.guard_ms_per_s * kNsPerMs;
  for (const std::uint64_t client : {100, 201, 300, 301}) {
    INFO(client);
    CHECK(run.open_ns[client] >= 39 / 4 * guard);
  }
  CHECK(run.guarded_ns[0] <= 41 * guard);
  CHECK(run.guarded_ns[1] <= 41 * guard);
}

TEST_CASE("the rest of a guard slot goes to the next group") {
  World world(1);
  world.Add(9, 50, 0, true);
  world.Add(1, 0, 0, true);
  world.Add(2, 0, 0, true);
  const std::uint64_t turn = world.state.settings.guard_ms_per_s * kNsPerMs;
  const std::uint64_t due = kNow + kNsPerS - turn;
  CHECK(Letters(world.At(kNow)) == "oHH");
  CHECK(Letters(world.At(due)) == "ooH");
  SECTION("idle early") {
    world.state.tenants[1].busy = false;
    CHECK(Letters(world.At(due + turn / 4)) == "oHo");
    CHECK(Letters(world.At(due + turn)) == "oHH");
    world.state.tenants[1].busy = true;
    CHECK(Letters(world.At(due + turn + 1)) == "oHH");
    // It has had three quarters of its slot, so it still counts as having waited longest.
    CHECK(Letters(world.At(due + kNsPerS)) == "oHo");
    CHECK(Letters(world.At(due + kNsPerS + turn)) == "oHH");
    CHECK(Letters(world.At(due + 2 * kNsPerS)) == "ooH");
  }
  SECTION("too late to be of use") {
    world.state.tenants[1].busy = false;
    CHECK(Letters(world.At(due + turn - 1)) == "oHH");
    CHECK(Letters(world.At(due + kNsPerS)) == "oHo");
  }
  SECTION("gone") {
    world.state.tenants.erase(world.state.tenants.begin() + 1);
    world.state.groups.erase(world.state.groups.begin() + 1);
    world.state.tenants[1].group = 1;
    CHECK(Letters(world.At(due + turn / 4)) == "oo");
    CHECK(Letters(world.At(due + turn)) == "oH");
    CHECK(Letters(world.At(due + kNsPerS)) == "oo");
  }
}

TEST_CASE("useful openings count towards the guard's turn, shorter ones do not") {
  for (const std::uint64_t length : {kNsPerMs / 2, 2 * kNsPerMs}) {
    INFO(length);
    World world(1);
    world.Add(9, 50, 0, true);
    world.Add(1, 0, 0, true);
    CHECK(Letters(world.At(kNow)) == "oH");
    for (std::uint64_t i = 1; i <= 9; ++i) {
      world.state.tenants[0].busy = false;
      CHECK(Letters(world.At(kNow + i * kNsPerS / 10)) == "oo");
      world.state.tenants[0].busy = true;
      CHECK(Letters(world.At(kNow + i * kNsPerS / 10 + length)) == "oH");
    }
    const std::uint64_t turn = world.state.settings.guard_ms_per_s * kNsPerMs;
    CHECK(Letters(world.At(kNow + kNsPerS - turn)) == (length < kNsPerMs ? "oo" : "oH"));
  }
}

TEST_CASE("newcomers do not run before groups that wait for a turn") {
  World world(1, 1);
  world.state.settings.guard_ms_per_s = 0;
  world.Add(1000, 50, 0, false);
  world.Add(1, 0, 0, true);
  Run run(world);
  // There are always two others, new ones every 20 ms.
  for (std::uint64_t id = 2; id < 200; ++id) {
    world.Add(id, 0, 0, true);
    if (world.state.groups.size() > 4) {
      world.state.groups.erase(world.state.groups.begin() + 2);
      world.state.tenants.erase(world.state.tenants.begin() + 2);
      for (Tenant& tenant : world.state.tenants)
        tenant.group -= tenant.group > 2 ? 1 : 0;
    }
    run.Until(run.now_ns + 20 * kNsPerMs);
  }
  CHECK(run.open_ns[100] >= kNsPerS);
}

TEST_CASE("a group without a share has its turn beside one that is kept to a share elsewhere") {
  World world(2, 1);
  world.state.settings.guard_ms_per_s = 0;
  world.Add(9, 50, 1, false);  // so turns are taken there
  world.Add(2, 0, 0, false);   // of another weight, and idle
  world.GroupOf(2, 0).weight = 200;
  world.Add(1, 0, 0, true);
  world.Add(1, 0, 1, true);
  world.Add(3, 0, 1, true);
  Run run(world);
  run.Until(kNow + 10 * kNsPerS);
  CHECK(run.open_ns[301] > 4 * kNsPerS);
  CHECK(run.open_ns[101] > 4 * kNsPerS);
  CHECK(run.longest_wait_ns[3] <= 2 * kNsPerMs * world.state.settings.turn_ms);
}
