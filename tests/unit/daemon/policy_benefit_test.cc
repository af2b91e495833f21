// Whether holding helps: what is learnt of an important group from how fast it gets on in both ways. A made-up group
// whose launches take so long while others are held and so long beside them; virtual time.
#include <cmath>
#include <random>
#include <tuple>

#include "daemon/policy/benefit.h"
#include "tests/unit/daemon/policy_world.h"

namespace xschedd::policy {
namespace {

using test::kNow;
using test::Seeds;
using test::World;
using Mode = BenefitMemory::Mode;

struct Behaviour {
  std::uint64_t launches = 100;  // of a burst
  double held_us = 100;          // busy time of a launch
  double beside_us = 100;
  // If its client says when its host waits, it does so at a burst's end: while others are held, while they run beside
  // it, and if they are held from then on.
  double waits_held_us = 0;
  double waits_beside_us = 0;
  double waits_then_held_us = 0;
  double waits_for_window = 0;  // for each µs that others may have in flight then, beside waits_held_us; else the above
  double noise = 0.1;           // of a burst's, as a standard deviation
  double drift = 0;             // of all of them, over some seconds: the core that it runs on
  std::uint64_t pause_us = 300;
};

struct Core {
  double noise = 0.1;
  double drift = 0;
};
constexpr Core kUnsteady{0.2, 0.3};  // its speed changes by a half

// Bursts of 10.6 ms while others are held, of which the host waits for 100 µs.
Behaviour Chat(double waits_beside_us, double waits_then_held_us, const Core& core = {}) {
  return {.launches = 700,
          .held_us = 15,
          .beside_us = 15,
          .waits_held_us = 100,
          .waits_beside_us = waits_beside_us,
          .waits_then_held_us = waits_then_held_us,
          .noise = core.noise,
          .drift = core.drift};
}

// An important tenant beside one that always has work, on one device, decided about as the daemon would.
class Pair {
 public:
  explicit Pair(std::uint32_t tolerance_percent, std::uint32_t seed = 1) : world_(1, 1), random_(seed) {
    world_.state.settings.tolerance_percent = tolerance_percent;
    world_.state.settings.linger_us = 200;
    world_.state.settings.guard_ms_per_s = 10;
    world_.Add(1, 10, 0, false);
    world_.Add(2, 0, 0, true);
    Decide();
  }

  void Run(const Behaviour& behaviour, double seconds) {
    const auto end = now_ + static_cast<std::uint64_t>(seconds * kNsPerS);
    while (now_ < end)
      Burst(behaviour);
  }

  Mode Settled() const { return world_.state.groups[0].memory.benefit.settled; }
  std::uint64_t Changes() const { return changes_; }
  double BesidePart() const {
    return busy_ns_ == 0 ? 0 : static_cast<double>(beside_ns_) / static_cast<double>(busy_ns_);
  }
  void SetDeadline(std::uint64_t ns) { Important().deadline_after_ns = ns; }
  void AddOther(std::uint64_t id) { world_.Add(id, 0, 0, true); }
  void ReplaceOther(std::uint64_t client) { world_.state.tenants[1].client = client; }
  // For so long it has no work, nor has the other one.
  void Rest(double seconds) {
    world_.state.tenants[1].busy = false;
    Decide();
    now_ += static_cast<std::uint64_t>(seconds * kNsPerS);
    world_.state.tenants[1].busy = true;
    Decide();
  }
  void SetStrict(bool strict) { world_.state.groups[0].strict = strict; }
  void SetTolerance(std::uint32_t percent) { world_.state.settings.tolerance_percent = percent; }
  void ForgetTimes() { beside_ns_ = busy_ns_ = changes_ = 0; }

 private:
  void Burst(const Behaviour& behaviour) {
    Important().busy = true;
    Important().busy_since_ns = now_;
    Decide();
    const double core = 1 + behaviour.drift * std::sin(static_cast<double>(now_ % (10 * kNsPerS)) / 1e9 * 0.628);
    const double own = core * std::exp(behaviour.noise * normal_(random_));
    double left = static_cast<double>(behaviour.launches);
    // As long as nothing is decided anew, one way of running goes on.
    while (left > 0) {
      const double us = own * (besides_ ? behaviour.beside_us : behaviour.held_us);
      const double until = static_cast<double>(next_look_ - now_) / 1e3 / us;
      const double count = std::min(left, std::max(1.0, until));
      const auto passed = static_cast<std::uint64_t>(count * us * 1e3) + 1;
      left -= count;
      now_ += passed;
      busy_ns_ += passed;
      if (besides_) beside_ns_ += passed;
      Important().launched = static_cast<std::uint64_t>(std::ceil(count));
      if (left > 0) Decide();
    }
    if (behaviour.waits_held_us != 0) Wait(behaviour);
    Important().busy = false;
    Important().idle_since_ns = now_;
    Decide();
    now_ += behaviour.pause_us * kNsPerUs;
    if (next_look_ < now_) Decide();
  }

  void Wait(const Behaviour& behaviour) {
    const bool was_beside = besides_;
    const double window_us = window_us_;
    Important().waits = true;
    Decide();
    const double then_held_us = behaviour.waits_for_window == 0
                                    ? behaviour.waits_then_held_us
                                    : behaviour.waits_held_us + behaviour.waits_for_window * window_us;
    const double us = besides_ ? behaviour.waits_beside_us : was_beside ? then_held_us : behaviour.waits_held_us;
    const auto passed = static_cast<std::uint64_t>(us * 1e3);
    now_ += passed;
    busy_ns_ += passed;
    if (besides_) beside_ns_ += passed;
    Important().waits = false;
  }

  void Decide() {
    const Decision decision = world_.At(now_);
    next_look_ = std::min(decision.next_look_ns, now_ + kNsPerS);
    besides_ = Important().busy && !decision.gates[1].held && decision.gates[1].why == Why::kBeside;
    window_us_ = decision.gates[1].window_us;
    if (Settled() != before_) ++changes_;
    before_ = Settled();
    Important().launched = 0;
  }

  Tenant& Important() { return world_.state.tenants[0]; }

  World world_;
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  std::uint64_t now_ = kNow;
  std::uint64_t next_look_ = kNever;
  bool besides_ = false;
  std::uint32_t window_us_ = 0;  // of the other one
  Mode before_ = Mode::kHeld;
  std::uint64_t changes_ = 0;
  std::uint64_t beside_ns_ = 0;
  std::uint64_t busy_ns_ = 0;
};

TEST_CASE("others run beside an important group that holding does not make faster, and are held for one that it does") {
  struct Row {
    const char* name;
    Behaviour behaviour;
    Mode settled;
  };
  const Row rows[] = {
      {"bound by its host", {}, Mode::kBeside},
      {"the same, on a core whose speed changes by a half", {.noise = 0.2, .drift = 0.3}, Mode::kBeside},
      {"a loop that never synchronises", {.launches = 1'000'000'000, .pause_us = 0}, Mode::kBeside},
      {"a little faster beside others", {.beside_us = 95}, Mode::kBeside},
      {"waits for others at its end", Chat(2000, 300), Mode::kWaitsWide},
      {"the same, on a core whose speed changes by a half", Chat(2000, 300, kUnsteady), Mode::kWaitsWide},
      {"waits for others, but not for long, on such a core", Chat(400, 300, kUnsteady), Mode::kBeside},
      {"waits too long all the same", Chat(5000, 3000), Mode::kHeld},
      {"does nothing but wait",
       {.launches = 5,
        .held_us = 10,
        .beside_us = 10,
        .waits_held_us = 3000,
        .waits_beside_us = 6000,
        .waits_then_held_us = 3000},
       Mode::kHeld},
      {"others slow it down while its client does not say that it waits",
       {.beside_us = 200, .waits_held_us = 100, .waits_beside_us = 100, .waits_then_held_us = 100},
       Mode::kHeld},
      {"twice as slow beside others", {.beside_us = 200}, Mode::kHeld},
      {"a fifth slower, on such a core", {.beside_us = 120, .noise = 0.2, .drift = 0.3}, Mode::kHeld},
      {"a loop that others slow down", {.launches = 1'000'000'000, .beside_us = 180, .pause_us = 0}, Mode::kHeld},
      {"short requests", {.launches = 1, .held_us = 700, .beside_us = 7000}, Mode::kHeld},
      {"few requests: holding costs next to nothing",
       {.launches = 1, .held_us = 700, .beside_us = 700, .pause_us = 50'000},
       Mode::kHeld},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    std::uint32_t right = 0;
    for (std::uint32_t seed = 1; seed <= Seeds(20); ++seed) {
      Pair pair(5, seed);
      pair.Run(row.behaviour, 60);
      right += pair.Settled() == row.settled ? 1u : 0u;
    }
    CHECK(20 * right >= 19 * Seeds(20));
  }
}

TEST_CASE("others are held only while its host waits, if that is enough") {
  World world(1, 1);
  world.state.settings.tolerance_percent = 5;
  world.state.settings.linger_us = 200;
  world.Add(1, 10, 0, false);
  world.Add(2, 0, 0, true);
  BenefitMemory& benefit = world.state.groups[0].memory.benefit;
  benefit.mode = benefit.settled = Mode::kWaitsWide;
  benefit.next_trial_ns = kNever;
  Tenant& important = world.state.tenants[0];
  world.At(kNow);
  important.busy = true;
  important.busy_since_ns = kNow + 1;
  Decision decision = world.At(kNow + 1);
  CHECK(decision.gates[1].why == Why::kBeside);
  // Those who may be held have a window also while they are not.
  CHECK(decision.gates[1].window_us == 4 * world.state.settings.window_us);
  CHECK(decision.gates[0].tells_waits);
  CHECK(!decision.gates[1].tells_waits);
  important.waits = true;
  decision = world.At(kNow + 2);
  CHECK(decision.gates[1].held);
  CHECK(decision.gates[1].why == Why::kPriority);
  // It lingers behind each wait: the next one may come at once.
  constexpr std::uint64_t kLinger = Benefit::kLingerNs;
  important.waits = false;
  decision = world.At(kNow + 3);
  CHECK(decision.gates[1].held);
  CHECK(decision.next_look_ns == kNow + 3 + kLinger);
  CHECK(!world.At(kNow + 3 + kLinger).gates[1].held);
  // Likewise where the end of the wait is the end of its work.
  important.waits = true;
  CHECK(world.At(kNow + 4 + kLinger).gates[1].held);
  important.waits = important.busy = false;
  important.idle_since_ns = kNow + 5 + kLinger;
  CHECK(world.At(kNow + 5 + kLinger).gates[1].held);
  CHECK(!world.At(kNow + 5 + 2 * kLinger).gates[1].held);
}

TEST_CASE("windows below one that holds others whenever it is busy, only while its host waits, or never") {
  struct Row {
    Mode mode;
    std::uint32_t together;  // in windows
    bool is_divided;
  };
  for (const Row& row : {Row{Mode::kHeld, 1, true}, Row{Mode::kWaitsNarrow, 1, true}, Row{Mode::kWaitsWider, 2, true},
                         Row{Mode::kWaitsWide, 4, true}, Row{Mode::kBeside, 4, false}}) {
    INFO("mode " << ModeText(row.mode));
    World world(1, 0);
    world.state.settings.tolerance_percent = 5;
    world.Add(1, 10, 0, false);
    world.Add(2, 0, 0, true);
    world.Add(3, 0, 0, true);
    BenefitMemory& benefit = world.state.groups[0].memory.benefit;
    benefit.mode = benefit.settled = row.mode;
    benefit.next_trial_ns = kNever;
    world.At(kNow);
    const Decision decision = world.At(kNow + 1);
    const std::uint32_t each = row.together * world.state.settings.window_us / (row.is_divided ? 2 : 1);
    CHECK(decision.gates[1].window_us == each);
    CHECK(decision.gates[2].window_us == each);
  }
}

TEST_CASE("of the windows below one that waits, the widest that is not too slow") {
  // Others delay it by what they have in flight when it begins to wait.
  struct Row {
    double us_of_window;
    Mode settled;
  };
  // A burst of 10.6 ms while others are held.
  for (const Row& row :
       {Row{0.2, Mode::kWaitsWide}, Row{0.4, Mode::kWaitsWider}, Row{0.8, Mode::kWaitsNarrow}, Row{2.0, Mode::kHeld}}) {
    INFO(row.us_of_window << " us for each us of window");
    Behaviour chat = Chat(5000, 0, {.noise = 0.2});
    chat.waits_for_window = row.us_of_window;
    Pair pair(5);
    pair.Run(chat, 60);
    CHECK(pair.Settled() == row.settled);
  }
}

TEST_CASE("what it may lose for one of the others it may lose for each of four, and no more") {
  for (const std::uint32_t others : {1u, 2u, 4u, 7u}) {
    for (const double percent : {4.0, 9.0, 18.0, 25.0}) {
      INFO(others << " others, " << percent << " % slower");
      Pair pair(5);
      for (std::uint32_t i = 1; i < others; ++i)
        pair.AddOther(10 + i);
      pair.Run({.beside_us = 100 + percent, .noise = 0.02}, 60);
      CHECK(pair.Settled() == (percent < 5 * std::min(others, 4u) ? Mode::kBeside : Mode::kHeld));
    }
  }
}

TEST_CASE("what is known with one other is not believed with four") {
  for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
    INFO("seed " << seed);
    Pair pair(5, seed);
    pair.Run({.beside_us = 110, .noise = 0.05}, 60);
    CHECK(pair.Settled() == Mode::kHeld);
    for (std::uint64_t id : {11, 12, 13})
      pair.AddOther(id);
    // Beside four it may be a fifth slower, and is more.
    pair.Run({.beside_us = 130, .noise = 0.05}, 20);
    CHECK(pair.Settled() == Mode::kHeld);
  }
}

TEST_CASE("what is known beside one neighbour is not believed of the next") {
  for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
    INFO("seed " << seed);
    Pair pair(5, seed);
    pair.Run(Chat(2000, 300), 200);
    REQUIRE(pair.Settled() == Mode::kWaitsWide);
    // By so little that no pair is a surprise.
    pair.ReplaceOther(300);
    pair.Run(Chat(2000, 1100), 20);
    CHECK(pair.Settled() == Mode::kHeld);
  }
}

TEST_CASE("neighbours that come and go while nothing is measured put nothing off") {
  Pair pair(5);
  // Holding costs next to nothing.
  const Behaviour seldom{.launches = 1, .held_us = 700, .beside_us = 700, .pause_us = 50'000};
  for (std::uint64_t client = 300; client < 340; ++client) {
    pair.ReplaceOther(client);
    pair.Run(seldom, 2);
  }
  pair.Run({}, 20);
  REQUIRE(pair.Settled() == Mode::kBeside);
  pair.ReplaceOther(400);
  pair.Run({.beside_us = 110, .noise = 0.02}, 12);
  CHECK(pair.Settled() == Mode::kHeld);
}

TEST_CASE("until it was measured beside them, four others are worth no more than one") {
  Pair pair(5);
  pair.Run({}, 30);
  pair.ReplaceOther(300);
  pair.Run({.beside_us = 112, .noise = 0.02}, 7);
  REQUIRE(pair.Settled() == Mode::kHeld);
  for (std::uint64_t id : {11, 12, 13})
    pair.AddOther(id);
  pair.Run({.beside_us = 112, .noise = 0.02}, 3);
  CHECK(pair.Settled() == Mode::kHeld);
  pair.Run({.beside_us = 112, .noise = 0.02}, 20);
  CHECK(pair.Settled() == Mode::kBeside);
}

TEST_CASE("the answer stays while it is looked at again beside another neighbour") {
  Pair pair(5);
  pair.Run({}, 60);
  REQUIRE(pair.Settled() == Mode::kBeside);
  pair.ForgetTimes();
  pair.ReplaceOther(300);
  pair.Run({}, 20);
  CHECK(pair.Changes() == 0);
  CHECK(pair.BesidePart() > 0.85);
}

TEST_CASE("neighbours that come and go are looked at more and more seldom, if they change nothing") {
  Pair pair(5);
  pair.Run({}, 60);
  pair.ForgetTimes();
  for (std::uint64_t client = 300; client < 500; ++client) {
    pair.ReplaceOther(client);
    pair.Run({}, 3);
  }
  CHECK(pair.BesidePart() > 0.97);
  CHECK(pair.Changes() <= 4);
}

TEST_CASE("time in which nobody could be held brings no look nearer") {
  Pair pair(5);
  pair.Run({}, 60);
  REQUIRE(pair.Settled() == Mode::kBeside);
  pair.ForgetTimes();
  for (int i = 0; i < 50; ++i) {
    pair.Rest(40);
    pair.Run({}, 1);
  }
  CHECK(pair.BesidePart() > 0.97);
}

TEST_CASE("others stay held between the waits of a row, and not behind its last") {
  World world(1, 1);
  world.state.settings.tolerance_percent = 5;
  world.Add(1, 10, 0, true);
  world.Add(2, 0, 0, true);
  BenefitMemory& benefit = world.state.groups[0].memory.benefit;
  benefit.mode = benefit.settled = Mode::kWaitsWide;
  benefit.next_trial_ns = kNever;
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

TEST_CASE("below one that holds others only while its host waits no turns are taken") {
  for (const bool waits : {false, true}) {
    World world(1, 1);
    world.state.settings.tolerance_percent = 5;
    world.Add(1, 10, 0, true);
    world.Add(2, 0, 0, true);
    world.Add(3, 0, 0, true);
    BenefitMemory& benefit = world.state.groups[0].memory.benefit;
    benefit.mode = benefit.settled = Mode::kWaitsWide;
    benefit.next_trial_ns = kNever;
    world.state.tenants[0].waits = waits;
    world.At(kNow);
    const Decision decision = world.At(kNow + 1);
    CHECK(decision.gates[1].held == waits);
    CHECK(decision.gates[2].held == waits);
  }
}

TEST_CASE("who is never measured need not say when its host waits") {
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

TEST_CASE("with a deadline, early is nothing and late is late") {
  struct Row {
    const char* name;
    std::uint64_t deadline_ms;
    double beside_us;
    Mode settled;
  };
  // Bursts of 10 ms while others are held.
  const Row rows[] = {
      {"twice as slow, and in time", 30, 200, Mode::kBeside},
      {"twice as slow, and too late", 15, 200, Mode::kHeld},
      {"late either way, and no slower", 5, 100, Mode::kBeside},
      {"late either way, and slower", 5, 200, Mode::kHeld},
      {"none", 0, 200, Mode::kHeld},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    Pair pair(5);
    pair.SetDeadline(row.deadline_ms * kNsPerMs);
    pair.Run({.beside_us = row.beside_us}, 60);
    CHECK(pair.Settled() == row.settled);
  }
}

TEST_CASE("what was found out is not forgotten while nothing is tolerated") {
  Pair pair(5);
  pair.Run({}, 20);
  REQUIRE(pair.Settled() == Mode::kBeside);
  pair.SetTolerance(0);
  pair.ForgetTimes();
  pair.Run({}, 5);
  CHECK(pair.BesidePart() == 0);
  pair.SetTolerance(5);
  pair.ForgetTimes();
  pair.Run({}, 1);
  CHECK(pair.BesidePart() > 0.7);
}

// Several important tenants of one priority and a less important one that always has work, on one device. A burst of a
// tenant that is `bound` takes twice as long while that one runs; the others' are as long either way.
struct Equals {
  Equals(std::uint32_t limit, const std::vector<bool>& bound, std::uint32_t seed = 1) : world(1, limit), random(seed) {
    world.state.settings.tolerance_percent = 5;
    world.state.settings.linger_us = 200;
    for (std::uint64_t id = 1; id <= bound.size(); ++id) {
      world.Add(id, 10, 0, false);
      tenants.push_back({.is_bound = bound[id - 1], .next_ns = kNow + random() % kNsPerMs});
    }
    world.Add(100, 0, 0, true);
    world.Add(101, 20, 0, false);  // so that the equals take turns where turns are taken
  }

  void Run(double seconds) {
    const auto end = now + static_cast<std::uint64_t>(seconds * kNsPerS);
    std::uint64_t look = now;
    while (now < end) {
      std::uint64_t next = look;
      for (std::size_t i = 0; i < tenants.size(); ++i)
        next = std::min(next, NextOf(i));
      next = std::max(next, now + 1);
      for (std::size_t i = 0; i < tenants.size(); ++i)
        Advance(i, next - now);
      now = next;
      const Decision decision = world.At(now);
      gates = decision.gates;
      look = decision.next_look_ns;
    }
  }

  Mode Settled(std::size_t i) const { return world.state.groups[i].memory.benefit.settled; }

  struct Important {
    bool is_bound = false;
    std::uint64_t next_ns = 0;  // when its pause is over
    double left = 0;            // launches of its burst
  };
  bool IsBesides() const { return !gates.empty() && !gates[tenants.size()].held; }
  double LaunchNs(std::size_t i) const { return tenants[i].is_bound && IsBesides() ? 200'000 : 100'000; }
  bool Runs(std::size_t i) const { return world.state.tenants[i].busy && !gates.empty() && !gates[i].held; }
  std::uint64_t NextOf(std::size_t i) const {
    if (!world.state.tenants[i].busy) return tenants[i].next_ns;
    return Runs(i) ? now + static_cast<std::uint64_t>(tenants[i].left * LaunchNs(i)) + 1 : kNever;
  }
  void Advance(std::size_t i, std::uint64_t ns) {
    Tenant& tenant = world.state.tenants[i];
    Important& own = tenants[i];
    if (Runs(i)) {
      const double before = own.left;
      own.left = std::max(0.0, own.left - static_cast<double>(ns) / LaunchNs(i));
      tenant.launched = static_cast<std::uint64_t>(std::ceil(before) - std::ceil(own.left));
      if (own.left > 0) return;
      tenant.busy = false;
      tenant.idle_since_ns = now + ns;
      own.next_ns = now + ns + (100 + random() % 600) * kNsPerUs;
    } else if (!tenant.busy && own.next_ns <= now + ns) {
      tenant.busy = true;
      tenant.busy_since_ns = now + ns;
      own.left = 30 + static_cast<double>(random() % 150);
    }
  }

  World world;
  std::mt19937 random;
  std::vector<Important> tenants;
  std::vector<Gate> gates;
  std::uint64_t now = kNow;
};

TEST_CASE("equals find out together: one that holds does not hide from another that it need not") {
  for (const std::uint32_t limit : {0u, 1u}) {
    INFO("limit " << limit);
    Equals hosts(limit, {false, false, false});
    hosts.Run(120);
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(hosts.Settled(i) == Mode::kBeside);
  }
  Equals mixed(0, {false, true});
  mixed.Run(120);
  CHECK(mixed.Settled(0) == Mode::kBeside);
  CHECK(mixed.Settled(1) == Mode::kHeld);
  // While one tries, the other does not hold the third for it.
  for (const std::uint32_t seed : {1u, 2u, 3u, 4u, 5u}) {
    INFO("seed " << seed);
    Equals bound(0, {true, true, true}, seed);
    bound.Run(120);
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(bound.Settled(i) == Mode::kHeld);
  }
}

TEST_CASE("what is tried costs little once the answer is known") {
  Pair held(5);
  held.Run({.beside_us = 300}, 60);
  held.ForgetTimes();
  held.Run({.beside_us = 300}, 600);
  CHECK(held.BesidePart() < 0.01);
  Pair beside(5);
  beside.Run({}, 60);
  beside.ForgetTimes();
  beside.Run({}, 600);
  CHECK(beside.BesidePart() > 0.99);
}

TEST_CASE("to find out that others slow it down costs an important tenant a part of a few requests") {
  for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
    // Requests of 18 ms that take eight times as long beside others, as in the demo.
    Pair pair(5, seed);
    pair.Run({.launches = 60, .held_us = 300, .beside_us = 2400, .pause_us = 150'000}, 20);
    INFO("seed " << seed << ", beside for " << pair.BesidePart() << " of its time");
    CHECK(pair.Settled() == Mode::kHeld);
    CHECK(pair.BesidePart() < 0.1);
  }
}

TEST_CASE("the answer follows a tenant that changes, both ways") {
  Pair pair(5);
  pair.Run({}, 60);
  REQUIRE(pair.Settled() == Mode::kBeside);
  pair.Run({.beside_us = 200}, 150);
  CHECK(pair.Settled() == Mode::kHeld);
  pair.Run({}, 300);
  CHECK(pair.Settled() == Mode::kBeside);
}

TEST_CASE("the answer does not flap where it is close") {
  for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
    Pair pair(5, seed);
    pair.Run({.beside_us = 105, .noise = 0.3, .drift = 0.4}, 600);
    INFO("changes in ten minutes: " << pair.Changes());
    CHECK(pair.Changes() <= 20);
  }
}

TEST_CASE("a block has the launches of its first burst, and none of the rest of one that was cut short") {
  BenefitMemory memory;
  memory.cost = 1;
  std::uint64_t now = kNow;
  std::uint64_t next_look = kNever;
  const auto at = [&](std::uint64_t ms, std::uint64_t launched, bool busy) {
    now += ms * kNsPerMs;
    const Benefit benefit(5, now);
    benefit.Advance(memory, {.launched = launched, .busy = busy, .contended = true});
    if (benefit.IsDue(memory)) benefit.Begin(memory);
    benefit.Note(memory, busy, next_look);
  };
  const auto burst = [&](std::uint64_t ms) {
    at(1, 8, true);
    at(ms, 0, false);
  };
  at(1, 0, false);
  burst(25);
  burst(25);
  // Two bursts of 25 ms while others were held, with all of their launches.
  CHECK(memory.place == 2);
  CHECK(memory.first.launches == 16);
  CHECK(memory.mode == Mode::kBeside);
  // The first one beside them is clearly slower after half as long again: the pair ends within it.
  at(1, 8, true);
  at(60, 0, true);
  CHECK(memory.place == 0);
  REQUIRE(memory.Of(Mode::kBeside).pairs == 1);
  at(20, 0, false);
  // Of the next pair the block beside others is the first one; what is left of the burst that ends it is in neither.
  at(1, 8, true);
  REQUIRE(memory.place == 1);
  REQUIRE(memory.mode == Mode::kBeside);
  at(60, 0, true);
  REQUIRE(memory.place == 2);
  at(20, 0, false);
  CHECK(memory.block.busy_ns == 0);
  burst(25);
  CHECK(memory.block.launches == 8);
  CHECK(memory.block.busy_ns == 25 * kNsPerMs);
  // But for one that does not end: its work counts from some time on, or the pair would last for ever.
  memory.skips = true;
  at(1, 8, true);
  for (int i = 0; i < 30; ++i)
    at(10, 100, true);
  CHECK(memory.Of(Mode::kBeside).pairs > 1);
}

TEST_CASE("a block is not looked at again and again") {
  BenefitMemory memory;
  memory.place = 1;
  memory.contended = true;
  // A new burst in a block that has been long enough.
  memory.block.busy_ns = kNsPerS;
  std::uint64_t next_look_ns = kNever;
  Benefit(5, kNow).Note(memory, true, next_look_ns);
  CHECK(next_look_ns >= kNow + kNsPerMs);
}

TEST_CASE("of one that is strict others are held whatever that gives") {
  Pair pair(5);
  pair.SetStrict(true);
  pair.Run({}, 60);
  CHECK(pair.Settled() == Mode::kHeld);
  CHECK(pair.BesidePart() == 0);
  pair.SetStrict(false);
  pair.Run({}, 20);
  CHECK(pair.Settled() == Mode::kBeside);
}

TEST_CASE("without a tolerance others are always held") {
  Pair pair(0);
  pair.Run({}, 60);
  CHECK(pair.Settled() == Mode::kHeld);
  CHECK(pair.BesidePart() == 0);
}

TEST_CASE("a client whose launches are not counted is never run beside") {
  Pair pair(5);
  pair.Run({.launches = 0}, 1);
  CHECK(pair.BesidePart() == 0);
}

}  // namespace
}  // namespace xschedd::policy
