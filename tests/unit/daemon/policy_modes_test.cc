// What each mode of holding for an important group means for the others: when they are held, their windows and turns.
#include "daemon/policy/benefit.h"
#include "tests/unit/daemon/policy_world.h"

namespace xschedd::policy {
namespace {

using test::kNow;
using test::World;
using Mode = BenefitMemory::Mode;

// An important group for which this mode is known to be enough, above `others` that always have work.
World Below(Mode mode, std::uint32_t others, bool is_busy, std::uint32_t limit = 1) {
  World world(1, limit);
  world.state.settings.tolerance_percent = 5;
  world.Add(1, 10, 0, is_busy);
  for (std::uint32_t i = 0; i < others; ++i)
    world.Add(2 + i, 0, 0, true);
  BenefitMemory& benefit = world.state.groups[0].memory.benefit.Use();
  benefit.mode = benefit.settled = mode;
  benefit.next_trial_ns = kNever;
  return world;
}

TEST_CASE("others are held only while the host waits, if that is enough") {
  World world = Below(Mode::kWaitsWide, 1, false);
  world.state.settings.linger_us = 200;
  Tenant& important = world.state.tenants[0];
  world.At(kNow);
  important.busy = true;
  important.busy_since_ns = kNow + 1;
  Decision decision = world.At(kNow + 1);
  CHECK(decision.gates[1].why == Why::kBeside);
  // Clients that may be held have a window also while they are open.
  CHECK(decision.gates[1].window_us == 4 * world.state.settings.window_us);
  CHECK(decision.gates[0].tells_waits);
  CHECK(!decision.gates[1].tells_waits);
  important.waits = true;
  decision = world.At(kNow + 2);
  CHECK(decision.gates[1].held);
  CHECK(decision.gates[1].why == Why::kPriority);
  CHECK(decision.gates[1].may_spin);
  // Linger follows each wait, because the next one may come at once.
  constexpr std::uint64_t kLinger = kWaitLingerNs;
  important.waits = false;
  decision = world.At(kNow + 3);
  CHECK(decision.gates[1].held);
  CHECK(decision.next_decision_ns == kNow + 3 + kLinger);
  CHECK(!world.At(kNow + 3 + kLinger).gates[1].held);
  // Likewise where the end of the wait is the end of its work.
  important.waits = true;
  CHECK(world.At(kNow + 4 + kLinger).gates[1].held);
  important.waits = important.busy = false;
  important.idle_since_ns = kNow + 5 + kLinger;
  CHECK(world.At(kNow + 5 + kLinger).gates[1].held);
  CHECK(!world.At(kNow + 5 + 2 * kLinger).gates[1].held);
}

TEST_CASE("held threads may spin below a more important group, but not while they wait for a turn") {
  World world = Below(Mode::kHeld, 2, true);
  Decision decision = world.At(kNow);
  for (const std::size_t low : {1u, 2u}) {
    CHECK(decision.gates[low].why == Why::kPriority);
    CHECK(decision.gates[low].may_spin);
  }
  CHECK(!decision.gates[0].may_spin);
  world.state.settings.max_concurrent = 1;
  world.state.tenants[0].busy = false;
  world.state.tenants[0].idle_since_ns = kNow;
  decision = world.At(kNow + kNsPerMs);
  CHECK(test::Letters(decision) == "ooH");
  CHECK(decision.gates[2].why == Why::kTurn);
  CHECK(!decision.gates[2].may_spin);
}

TEST_CASE("the windows below a group follow its mode") {
  struct Row {
    Mode mode;
    std::uint32_t percent;  // of the window
    bool is_divided;
  };
  for (const Row& row :
       {Row{Mode::kHeld, 100, true}, Row{Mode::kHeldWide, 100, true}, Row{Mode::kWaitsNarrowest, 50, true},
        Row{Mode::kWaitsNarrow, 100, true}, Row{Mode::kWaitsMedium, 150, true}, Row{Mode::kWaitsWider, 200, true},
        Row{Mode::kWaitsWide, 400, true}, Row{Mode::kWaitsHalf, 400, true}, Row{Mode::kBeside, 400, false},
        Row{Mode::kBesideWide, 800, false}, Row{Mode::kFree, 3'200, true}}) {
    INFO("mode " << ModeText(row.mode));
    World world = Below(row.mode, 2, false, 0);
    world.state.tenants[0].idle_since_ns = kNow - 1;
    world.At(kNow);
    const Decision decision = world.At(kNow + 1);
    const std::uint32_t each = row.percent * world.state.settings.window_us / 100 / (row.is_divided ? 2 : 1);
    CHECK(decision.gates[1].window_us == each);
    CHECK(decision.gates[2].window_us == each);
  }
}

TEST_CASE("the windows of many clients stay while some become busy or idle, and never exceed the budget") {
  World world = Below(Mode::kWaitsNarrow, 100, false, 0);
  world.state.tenants[0].idle_since_ns = kNow - 1;
  world.At(kNow);
  std::uint64_t now = kNow;
  // How many have work, and among how many the window is divided then.
  const std::pair<std::uint32_t, std::uint32_t> rows[] = {{1, 1},   {2, 2},   {7, 7},   {8, 10},  {9, 10},
                                                          {10, 10}, {11, 13}, {7, 7},   {60, 75}, {66, 75},
                                                          {54, 75}, {75, 75}, {38, 75}, {37, 46}, {100, 125}};
  for (const auto& [busy, divided] : rows) {
    INFO(busy << " have work");
    for (std::uint32_t i = 1; i <= 100; ++i) {
      Tenant& tenant = world.state.tenants[i];
      tenant.busy = i <= busy;
      tenant.idle_since_ns = now;
    }
    const Decision decision = world.At(++now);
    CHECK(decision.gates[1].window_us == world.state.settings.window_us / divided);
    CHECK(busy * decision.gates[1].window_us <= world.state.settings.window_us);
  }
}

TEST_CASE("the window between bursts is wide while one client at a time has work, and that is held as by any other") {
  World world = Below(Mode::kHeldWide, 1, false, 0);
  world.state.groups[0].memory.benefit.Use().several = 0;
  Tenant& important = world.state.tenants[0];
  important.idle_since_ns = kNow - 1;
  CHECK(world.At(kNow).gates[1].window_us == 8 * world.state.settings.window_us);
  important.busy = true;
  important.busy_since_ns = kNow + 1;
  CHECK(world.At(kNow + 1).gates[1].held);
  important.busy = false;
  important.idle_since_ns = kNow + 2;
  world.Add(3, 0, 0, true);
  world.At(kNow + 3);
  CHECK(world.At(kNow + 2 * kNsPerS).gates[1].window_us == world.state.settings.window_us / 2);
  world.state.tenants[2].busy = false;
  world.state.tenants[2].idle_since_ns = kNow + 2 * kNsPerS;
  world.At(kNow + 2 * kNsPerS + 1);
  CHECK(world.At(kNow + 4 * kNsPerS).gates[1].window_us == 8 * world.state.settings.window_us);
}

TEST_CASE("a wide window between bursts is no wider than another group above needs, and less wide beside its work") {
  struct Row {
    Mode middle;
    std::uint32_t percent;  // of the window, while the middle group is idle
    std::uint32_t beside;   // while it works, of both together
  };
  for (const Row& row : {Row{Mode::kFree, 800, 400}, Row{Mode::kBeside, 400, 400}, Row{Mode::kWaitsNarrow, 100, 100},
                         Row{Mode::kHeld, 100, 0}}) {
    INFO("mode " << ModeText(row.middle));
    World world = Below(Mode::kHeldWide, 1, false, 0);
    world.state.groups[0].memory.benefit.Use().several = 0;
    world.Add(3, 5, 0, false);
    BenefitMemory& middle = world.state.groups[2].memory.benefit.Use();
    middle.mode = middle.settled = row.middle;
    middle.next_trial_ns = kNever;
    for (const std::size_t above : {0u, 2u})
      world.state.tenants[above].idle_since_ns = kNow - 1;
    const std::uint32_t window_us = world.state.settings.window_us;
    CHECK(world.At(kNow).gates[1].window_us == row.percent * window_us / 100);
    world.state.tenants[2].busy = true;
    const Decision decision = world.At(kNow + 1);
    if (row.middle == Mode::kHeld) {
      CHECK(decision.gates[1].held);
    } else {
      CHECK(decision.gates[1].window_us == row.beside * window_us / 100 / 2);
    }
  }
}

TEST_CASE("a group without work for ten seconds leaves those below wider windows until it has some") {
  constexpr std::uint64_t kAway = 10 * kNsPerS;
  struct Row {
    Mode mode;
    std::uint32_t windows;  // of each of those below, once it is away
  };
  for (const Row& row : {Row{Mode::kHeld, 8}, Row{Mode::kWaitsNarrow, 8}, Row{Mode::kBesideWide, 8}}) {
    INFO("mode " << ModeText(row.mode));
    World world = Below(row.mode, 1, false);
    Tenant& important = world.state.tenants[0];
    important.idle_since_ns = kNow;
    const std::uint32_t window_us = world.state.settings.window_us;
    const std::uint32_t narrow_us = AllowanceOf(row.mode).window_percent * window_us / 100;
    CHECK(world.At(kNow + 1).gates[1].window_us == narrow_us);
    const Decision before = world.At(kNow + kAway - 1);
    CHECK(before.gates[1].window_us == narrow_us);
    // Nothing happens except that time passes.
    CHECK((row.mode == Mode::kBesideWide || before.next_decision_ns == kNow + kAway));
    CHECK(world.At(kNow + kAway).gates[1].window_us == row.windows * window_us);
    important.busy = true;
    important.busy_since_ns = kNow + kAway + 1;
    world.At(kNow + kAway + 1);
    important.busy = false;
    important.idle_since_ns = kNow + kAway + 2;
    CHECK(world.At(kNow + kAway + kNsPerS).gates[1].window_us == narrow_us);
  }
}

TEST_CASE("a group that has never launched is away, unless it is strict or the tolerance is 0") {
  for (const bool is_strict : {false, true}) {
    World world = Below(Mode::kHeld, 1, false);
    world.state.groups[0].strict = is_strict;
    CHECK(world.At(kNow).gates[1].window_us == (is_strict ? 1 : 8) * world.state.settings.window_us);
    world.state.settings.tolerance_percent = 0;
    CHECK(world.At(kNow + 1).gates[1].window_us == world.state.settings.window_us);
  }
}

TEST_CASE("between requests those below have a wide window if the next one will not wait before that has finished") {
  struct Row {
    const char* name;
    Mode mode;
    std::uint64_t lead_ns;
    std::uint64_t idle_ns;
    std::uint32_t percent;  // of the window
  };
  constexpr std::uint64_t kCredit = 2 * kNsPerMs;
  for (const Row& row : {Row{"a long lead", Mode::kWaitsNarrowest, 7 * kNsPerMs, kCredit + 1, 400},
                         Row{"the request may go on", Mode::kWaitsNarrowest, 7 * kNsPerMs, kCredit, 50},
                         Row{"a short lead", Mode::kWaitsNarrowest, kNsPerMs, kCredit + 1, 50},
                         Row{"no request yet", Mode::kWaitsNarrow, 0, kCredit + 1, 100},
                         Row{"no narrower than it was", Mode::kBesideWide, 7 * kNsPerMs, kCredit + 1, 800},
                         Row{"held whenever it is busy", Mode::kHeld, 7 * kNsPerMs, kCredit + 1, 100}}) {
    INFO(row.name);
    World world = Below(row.mode, 1, false);
    world.state.groups[0].memory.benefit.Use().waits.lead.ns = row.lead_ns;
    world.state.groups[0].memory.benefit.Use().pause_credit_ns = kCredit;
    Tenant& important = world.state.tenants[0];
    important.idle_since_ns = kNow;
    const std::uint32_t window_us = world.state.settings.window_us;
    world.At(kNow);
    const Decision before = world.At(kNow + kCredit - 1);  // the linger is over
    CHECK(before.gates[1].window_us == AllowanceOf(row.mode).window_percent * window_us / 100);
    // Nothing happens except that time passes.
    CHECK((row.percent != 400 || before.next_decision_ns == kNow + row.idle_ns));
    CHECK(world.At(kNow + row.idle_ns).gates[1].window_us == row.percent * window_us / 100);
    important.busy = true;
    const std::uint64_t begins_ns = important.busy_since_ns = kNow + row.idle_ns + 1;
    const Decision begun = world.At(begins_ns);
    const std::uint32_t narrow_us =
        HoldsThroughout(row.mode) ? 0 : AllowanceOf(row.mode).window_percent * window_us / 100;
    const bool is_wide = IsWhileItWaits(row.mode) && row.lead_ns > kRestLeadNs;
    CHECK(begun.gates[1].window_us == (is_wide ? 4 * window_us : narrow_us));
    if (!is_wide) continue;
    const std::uint64_t ahead_ns = AllowanceOf(row.mode).ahead_us * kNsPerUs;
    const std::uint64_t until_ns = begins_ns + row.lead_ns - ahead_ns;
    CHECK(begun.next_decision_ns <= until_ns);
    CHECK(world.At(until_ns - 1).gates[1].window_us == 4 * window_us);
    CHECK(world.At(until_ns).gates[1].held);
    CHECK(world.At(until_ns + Benefit::kMostAhead * ahead_ns).gates[1].window_us == narrow_us);
  }
}

// Waits of an important program: each begins some time after the last one ended.
class Waiting {
 public:
  explicit Waiting(World& world) : world_(world) {
    important().busy = true;
    important().busy_since_ns = now_ns_;
    world_.At(now_ns_);
  }
  // Time passes until it waits, which it does for 0.2 ms.
  void After(std::uint64_t us) {
    At(us, true);
    At(200, false);
  }
  // Only time passes.
  Decision Pass(std::uint64_t us) { return world_.At(now_ns_ + us * kNsPerUs); }

 private:
  Tenant& important() { return world_.state.tenants[0]; }
  void At(std::uint64_t us, bool waits) {
    now_ns_ += us * kNsPerUs;
    important().waits = waits;
    important().launched = 10;
    world_.At(now_ns_);
  }

  World& world_;
  std::uint64_t now_ns_ = kNow;
};

TEST_CASE("in a request those below have a wide window, and are shut some time before the next wait is expected") {
  struct Row {
    const char* name;
    std::vector<std::uint64_t> waits_us;  // over and over, each counted from the last one's end
    std::uint64_t shut_us;                // after the last one of these
    std::uint64_t wide_us;                // until then; 0: never
  };
  for (const Row& row : {
           Row{"one in 14 ms", {14'000}, 0, 12'000},
           Row{"three in a row", {14'000, 100, 300}, 0, 12'000},
           Row{"their last ones too far apart to stay shut in between", {14'000, 100, 1'100}, 0, 12'000},
           Row{"the shortest time counts", {14'000, 20'000, 17'000, 9'000}, 0, 7'000},
           Row{"one call that waits twice", {14'000, 10, 100, 20, 300, 10}, 0, 12'000},
           Row{"every second time too soon", {6'000, 3'900}, 0, 0},
           Row{"every third time soon", {14'000, 14'000, 3'000}, 0, 0},
           Row{"others stay shut for the next of the row", {14'000, 100, 300, 14'000, 100}, 1'000, 0},
       }) {
    INFO(row.name);
    World world = Below(Mode::kWaitsNarrow, 1, false);
    const std::uint32_t window_us = world.state.settings.window_us;
    Waiting program(world);
    for (int i = 0; i < 60; ++i)
      for (const std::uint64_t us : row.waits_us)
        program.After(us);
    const Decision first = program.Pass(0);
    CHECK(first.gates[1].held == (row.shut_us != 0));
    const Decision open = row.shut_us == 0 ? first : program.Pass(row.shut_us);
    CHECK(open.gates[1].window_us == (row.wide_us != 0 ? 4 : 1) * window_us);
    if (row.wide_us == 0) continue;
    CHECK(program.Pass(row.wide_us - 100).gates[1].window_us == 4 * window_us);
    CHECK(program.Pass(row.wide_us).gates[1].held);
    // The wait does not come.
    CHECK(program.Pass(row.wide_us + 5'999).gates[1].held);
    CHECK(program.Pass(row.wide_us + 6'000).gates[1].window_us == window_us);
    CHECK(program.Pass(row.wide_us + 60'000).gates[1].window_us == window_us);
  }
}

TEST_CASE("a time in which the group was on hold says nothing about when it waits") {
  World world = Below(Mode::kWaitsNarrow, 1, false);
  Waiting program(world);
  for (int i = 0; i < 10; ++i)
    program.After(8'000);
  world.state.groups[0].hold = true;
  program.Pass(1'000);
  world.state.groups[0].hold = false;
  program.After(5'000);
  CHECK(world.state.groups[0].memory.benefit->waits.gap.ns == 8 * kNsPerMs);
}

TEST_CASE("one group that is not away keeps the windows below it narrow") {
  World world = Below(Mode::kHeld, 1, false);
  Tenant& asleep = world.state.tenants[0];
  asleep.idle_since_ns = kNow - 20 * kNsPerS;
  world.Add(9, 5, 0, false).idle_since_ns = kNow - kNsPerS;
  CHECK(world.At(kNow).gates[1].window_us == world.state.settings.window_us);
}

TEST_CASE("others stay held between the waits of a row, but not after its last") {
  World world = Below(Mode::kWaitsWide, 1, true);
  Tenant& important = world.state.tenants[0];
  std::uint64_t now = kNow;
  world.At(now);
  struct Row {
    std::uint32_t waits;  // in a row, 100 µs apart; 10 ms until the next row
    bool lingers;         // behind the last
  };
  for (const Row& row : {Row{3, false}, Row{1, false}, Row{2, false}, Row{6, true}}) {
    INFO("waits in a row: " << row.waits);
    const auto pass = [&](std::uint64_t us) {
      now += us * kNsPerUs;
      return world.At(now).gates[1].held;
    };
    for (int repeated = 0; repeated < 40; ++repeated) {
      for (std::uint32_t i = 1; i <= row.waits; ++i) {
        important.waits = true;
        CHECK(pass(1));
        important.waits = false;
        const bool held_at_once = pass(200);
        const bool held = pass(99);
        if (repeated < 39) continue;
        INFO("wait " << i);
        CHECK(held_at_once == (i < row.waits || row.lingers));
        CHECK(held == held_at_once);
      }
      pass(10'000);
    }
  }
}

TEST_CASE("others are held for every other row of waits, or of waits in one that has no end") {
  World world = Below(Mode::kWaitsHalf, 1, true);
  Tenant& important = world.state.tenants[0];
  std::uint64_t now = kNow;
  world.At(now);
  // Whether others are held during a wait that begins `us` later, and just after it.
  const auto held = [&](std::uint64_t us) {
    now += us * kNsPerUs;
    important.waits = true;
    const bool during = world.At(now).gates[1].held;
    now += 50 * kNsPerUs;
    important.waits = false;
    CHECK(world.At(now).gates[1].held == during);
    return during;
  };
  for (int repeated = 0; repeated < 4; ++repeated) {
    INFO("row " << repeated);
    const bool is_held = repeated % 2 != 0;
    CHECK(held(10'000) == is_held);
    CHECK(held(300) == is_held);
    CHECK(held(300) == is_held);
  }
  CHECK(!held(10'000));
  for (int further = 0; further < 3; ++further)
    CHECK(!held(300));
  for (int further = 0; further < 4; ++further) {
    INFO("further wait " << further);
    CHECK(held(300) == (further % 2 == 0));
  }
}

TEST_CASE("below a group that holds only while its host waits, no group takes turns") {
  for (const bool waits : {false, true}) {
    World world = Below(Mode::kWaitsWide, 2, true);
    world.state.tenants[0].waits = waits;
    world.At(kNow);
    const Decision decision = world.At(kNow + 1);
    CHECK(decision.gates[1].held == waits);
    CHECK(decision.gates[2].held == waits);
  }
}

TEST_CASE("while a pair is measured it must be known soon when the group is idle, whatever the mode") {
  for (const Mode mode : {Mode::kHeld, Mode::kWaitsWide, Mode::kFree}) {
    INFO("mode " << ModeText(mode));
    World world = Below(mode, 1, true);
    world.state.tenants[1].busy = false;  // nobody waits for it
    CHECK(!world.At(kNow).gates[0].awaited);
    BenefitMemory& benefit = world.state.groups[0].memory.benefit.Use();
    benefit.place = 1;
    benefit.mode = mode;
    const Decision decision = world.At(kNow + 1);
    CHECK(decision.gates[0].awaited);
    CHECK(!decision.gates[1].awaited);
  }
}

TEST_CASE("launches must be known as they happen where a wait is expected by them, and while a pair is measured") {
  struct Row {
    Mode mode;
    bool is_needed;
  };
  for (const Row& row : {Row{Mode::kHeld, false}, Row{Mode::kHeldWide, false}, Row{Mode::kWaitsNarrowest, true},
                         Row{Mode::kWaitsWider, true}, Row{Mode::kWaitsWide, false}, Row{Mode::kWaitsHalf, false},
                         Row{Mode::kBeside, false}, Row{Mode::kFree, false}}) {
    INFO("mode " << ModeText(row.mode));
    World world = Below(row.mode, 1, true);
    BenefitMemory& benefit = world.state.groups[0].memory.benefit.Use();
    benefit.several = 0;
    CHECK(world.At(kNow).gates[0].count_may_wait == !row.is_needed);
    CHECK(!world.At(kNow).gates[1].count_may_wait);
    benefit.place = 1;
    CHECK(!world.At(kNow).gates[0].count_may_wait);
  }
}

TEST_CASE("a group that is never measured need not say when its host waits") {
  World world(1, 1);
  world.state.settings.tolerance_percent = 5;
  world.Add(1, 10, 0, true);
  world.Add(2, 0, 0, true);
  CHECK(world.At(kNow).gates[0].tells_waits);
  world.state.groups[0].strict = true;
  CHECK(!world.At(kNow).gates[0].tells_waits);
  world.state.groups[0].strict = false;
  world.state.settings.tolerance_percent = 0;
  CHECK(!world.At(kNow).gates[0].tells_waits);
}

}  // namespace
}  // namespace xschedd::policy
