// Clients that nobody gains by holding are untracked between trials: who is, what ends it, and what it costs.
#include "tests/unit/daemon/policy_pair.h"

namespace xschedd::policy {
namespace {

using namespace test;

// Groups that always have work, on some devices. Those that Know is called for are known to gain nothing by holding
// others, for a minute.
struct Node {
  explicit Node(std::uint32_t devices = 1) : world(devices, 1) { world.state.settings.tolerance_percent = 5; }

  Tenant& Add(std::uint64_t group, int priority, std::uint32_t device = 0) {
    return world.Add(group, priority, device, true);
  }
  void Know(std::size_t group) {
    Pass(1);
    BenefitMemory& memory = world.state.groups[group].memory.benefit.Use();
    memory.settled = memory.mode = Mode::kFree;
    memory.Of(Mode::kFree).is_known = true;
    memory.known_with = memory.others;
    memory.place = 0;
    memory.longest = 1;
    memory.wait_ns = 60 * kNsPerS;
    memory.next_trial_ns = now + memory.wait_ns;
  }
  // A decision after so many milliseconds.
  std::string Pass(std::uint64_t ms) {
    now += ms * kNsPerMs;
    decision = world.At(now);
    return Letters(decision);
  }
  Group& At(std::size_t group) { return world.state.groups[group]; }

  World world;
  Decision decision;
  std::uint64_t now = kNow;
};

// One important group, known, above two others.
struct Usual : Node {
  Usual() {
    Add(1, 10);
    Add(2, 0);
    Add(3, 0);
    Know(0);
  }
};

TEST_CASE("those below a group that gains nothing by holding them are untracked until its next trial") {
  Usual node;
  CHECK(node.Pass(1) == "o--");
  CHECK(node.Pass(1) == "o--");
  CHECK(node.decision.next_decision_ns <= node.At(0).memory.benefit->next_trial_ns);
  CHECK(node.Pass(60'000) == "ooo");
  // What they do is seen first.
  CHECK(node.At(0).memory.benefit->place == 0);
  node.Pass(100);
  CHECK(node.At(0).memory.benefit->place == 1);
}

TEST_CASE("the decision by which others step aside asks for the next trial in time") {
  Usual node;
  const std::uint64_t trial_ns = node.At(0).memory.benefit.Use().next_trial_ns = node.now + 500 * kNsPerMs;
  CHECK(node.Pass(1) == "o--");
  CHECK(node.decision.next_decision_ns == trial_ns);
}

TEST_CASE("untracked clients are taken to work, so that the next trial comes") {
  Usual node;
  REQUIRE(node.Pass(1) == "o--");
  CHECK(node.At(0).memory.benefit->contended);
  // While the important group has no work, its trial does not come.
  node.world.state.tenants[0].busy = false;
  node.world.state.tenants[0].idle_since_ns = node.now;
  node.Pass(1);
  CHECK(node.Pass(100'000) == "o--");
}

TEST_CASE("nobody is untracked below a group that may hold them") {
  Usual node;
  SECTION("since it is strict") {
    node.At(0).strict = true;
  }
  SECTION("since nothing is tolerated") {
    node.world.state.settings.tolerance_percent = 0;
  }
  SECTION("since step_aside is off") {
    node.world.state.settings.step_aside = false;
  }
  SECTION("since its answer is another") {
    node.At(0).memory.benefit.Use().settled = Mode::kWaitsWide;
  }
  SECTION("since it is not sure") {
    node.At(0).memory.benefit.Use().repeats = true;
  }
  CHECK(node.Pass(1).find('-') == std::string::npos);
}

TEST_CASE("all are tracked again as soon as a group above may hold them") {
  Usual node;
  REQUIRE(node.Pass(1) == "o--");
  SECTION("since it is strict now") {
    node.At(0).strict = true;
    CHECK(node.Pass(1) == "oHH");
  }
  SECTION("since nothing is tolerated any more") {
    node.world.state.settings.tolerance_percent = 0;
    CHECK(node.Pass(1) == "oHH");
  }
  SECTION("since step_aside is off now") {
    node.world.state.settings.step_aside = false;
    CHECK(node.Pass(1) == "ooo");
  }
  SECTION("since another has come") {
    node.Add(4, 20);
    CHECK(node.Pass(1) == "HHHo");
  }
  SECTION("since one of them is above the other now") {
    node.At(1).priority = 5;
    CHECK(node.Pass(1) == "ooH");
  }
}

TEST_CASE("all are tracked again beside whom nothing was measured") {
  Usual node;
  REQUIRE(node.Pass(1) == "o--");
  SECTION("another one") {
    Tenant& other = node.Add(4, 0);
    other.busy = false;
    CHECK(node.Pass(1) == "o--o");
    node.world.state.tenants[3].busy = true;
    CHECK(node.Pass(1) == "oooo");
  }
  SECTION("another one in the same group") {
    node.world.state.tenants[2].client = 999;
    CHECK(node.Pass(1) == "ooo");
  }
  SECTION("more of an old one") {
    node.world.Add(3, 0, 0, true);
    CHECK(node.Pass(1) == "oooo");
  }
}

TEST_CASE("a client without recent work stays tracked") {
  Node node;
  node.Add(1, 10);
  node.Add(2, 0);
  Tenant& idle = node.Add(3, 0);
  idle.busy = false;
  idle.idle_since_ns = kNow - 5 * kNsPerS;
  node.Know(0);
  CHECK(node.Pass(1) == "o-o");
}

TEST_CASE("who may be held, or is measured all the time, is tracked") {
  Usual node;
  SECTION("shares") {
    node.At(1).weight = 300;
    CHECK(node.Pass(1).find('-') == std::string::npos);
  }
  SECTION("a claim") {
    node.At(1).accounted = true;
    CHECK(node.Pass(1) == "ooo");
    node.At(1).accounted = false;
    node.At(0).accounted = true;  // it is tracked anyway
    CHECK(node.Pass(1) == "o--");
  }
  SECTION("a deadline") {
    node.world.state.tenants[0].deadline_after_ns = kNsPerS;
    CHECK(node.Pass(1) == "ooo");
  }
  SECTION("others than the one on hold") {
    REQUIRE(node.Pass(1) == "o--");
    node.At(1).hold = true;
    CHECK(node.Pass(1) == "oH-");
    node.At(1).hold = false;
    CHECK(node.Pass(1) == "o--");
  }
}

TEST_CASE("a group is untracked on all its devices or on none") {
  for (const bool is_known : {false, true}) {
    INFO(is_known);
    Node node(2);
    node.Add(1, 10, 0);
    node.Add(2, 0, 0);
    node.Add(2, 0, 1);
    node.Add(3, 10, 1);
    node.Add(4, 0, 0);
    node.Know(0);
    if (is_known) node.Know(2);
    const std::string letters = node.Pass(1);
    CHECK((is_known ? letters == "o--o-" : letters.find('-') == std::string::npos));
  }
}

TEST_CASE("a group is not told that others are aside if none of those below it is") {
  Node node(2);
  node.Add(1, 10, 0);
  node.Add(2, 0, 0);
  node.Add(3, 10, 1);
  node.Add(4, 0, 1).busy = false;
  node.Know(2);
  node.Know(0);
  REQUIRE(node.Pass(1) == "o-oo");
  CHECK(node.At(0).memory.benefit->others_aside);
  CHECK(!node.At(2).memory.benefit->others_aside);
}

TEST_CASE("on three levels only the lowest is untracked, and only if both above let it run") {
  Node node;
  node.Add(1, 20);
  node.Add(2, 10);
  node.Add(3, 0);
  node.Know(0);
  CHECK(node.Pass(1).find('-') == std::string::npos);
  node.Know(1);
  node.Know(0);
  CHECK(node.Pass(1) == "oo-");
}

TEST_CASE("others are untracked nearly all the time beside a group that gains nothing by holding them") {
  Pair pair(5);
  pair.Run({}, 60);
  REQUIRE(pair.Settled() == Mode::kFree);
  pair.ForgetTimes();
  pair.Run({}, 600);
  CHECK(pair.AsidePart() > 0.97);
  CHECK(pair.Changes() == 0);
}

TEST_CASE("a group that others begin to delay is found out while they are untracked") {
  for (std::uint32_t seed = 1; seed <= Seeds(20); ++seed) {
    INFO("seed " << seed);
    Pair pair(5, seed);
    pair.Run({}, 60);
    REQUIRE(pair.Settled() == Mode::kFree);
    // By its next trial, or the one after that.
    pair.Run({.beside_us = 140}, 70);
    CHECK(pair.Settled() == Mode::kHeld);
    Pair other(5, seed);
    other.Run({}, 60);
    REQUIRE(other.IsAside());
    // At once, by its pace.
    other.Run({.beside_us = 300}, 8);
    CHECK(other.Settled() == Mode::kHeld);
  }
}

TEST_CASE("a lower tolerance that makes the answer wrong is noticed while others are untracked") {
  Usual node;
  BenefitMemory& memory = node.At(0).memory.benefit.Use();
  memory.Of(Mode::kFree).typical = 0.03F;
  memory.Of(Mode::kFree).pairs = Benefit::kPairs;
  REQUIRE(node.Pass(1) == "o--");
  node.world.state.settings.tolerance_percent = 4;
  for (int i = 0; i < 3; ++i)
    CHECK(node.Pass(500) == "o--");
  node.world.state.settings.tolerance_percent = 1;
  std::string letters;
  for (int i = 0; i < 3; ++i)
    letters = node.Pass(500);
  CHECK(letters.find('-') == std::string::npos);
}

TEST_CASE("others that have no work when a trial is due are untracked again") {
  Usual node;
  REQUIRE(node.Pass(1) == "o--");
  REQUIRE(node.Pass(60'000) == "ooo");
  // They have work, but the important group has none.
  node.world.state.tenants[0].busy = false;
  node.world.state.tenants[0].idle_since_ns = node.now;
  CHECK(node.Pass(10) == "ooo");
  CHECK(node.decision.next_decision_ns <= node.now + Benefit::kWatchNs);
  CHECK(node.Pass(2'000) == "o--");
}

}  // namespace
}  // namespace xschedd::policy
