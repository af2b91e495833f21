// The window that others have between the bursts of an important group (kHeldWide), and what they lose by a small one.
#include "tests/unit/daemon/policy_pair.h"

namespace xschedd::policy {
namespace {

using namespace test;

TEST_CASE("a wide window between bursts ends once bursts have gaps") {
  Behaviour seldom{.launches = 1, .held_us = 700, .beside_us = 7000, .late_for_window = 0, .pause_us = 50'000};
  Pair pair(5);
  pair.Run(seldom, 60);
  REQUIRE(pair.Settled() == Mode::kHeldWide);
  seldom.late_for_window = 0.1;
  pair.Run(seldom, 600);
  CHECK(pair.Settled() == Mode::kHeld);
}

TEST_CASE("a group may be a little slower by a wide window between bursts, if others gain more by it") {
  // Requests of 0.9 ms, 20 a second, which wait for a part of what others have in flight.
  struct Row {
    double late_us;
    double others_gain;
    Mode settled;
  };
  for (const Row& row : {Row{20, 0, Mode::kHeldWide}, Row{65, 0.15, Mode::kHeldWide}, Row{65, 0.01, Mode::kHeld},
                         Row{150, 0.15, Mode::kHeld}, Row{150, 0.4, Mode::kHeld}}) {
    INFO(row.late_us << " us later, others " << row.others_gain << " faster");
    const Behaviour seldom{.launches = 60,
                           .held_us = 15,
                           .beside_us = 60,
                           .late_for_window = row.late_us / 3500,
                           .others_gain = row.others_gain,
                           .noise = 0.05,
                           .pause_us = 49'000};
    std::uint32_t right = 0;
    for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
      Pair pair(5, seed);
      pair.Run(seldom, 120);
      right += pair.Settled() == row.settled ? 1u : 0u;
    }
    CHECK(10 * right >= 9 * Seeds(10));
  }
}

TEST_CASE("whatever others say that they launch, a group is not slower than twice the tolerance") {
  const Behaviour seldom{.launches = 60, .held_us = 15, .beside_us = 60, .late_for_window = 0.05, .pause_us = 49'000};
  for (const std::uint64_t claim :
       {std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0} / 3, std::uint64_t{1} << 63}) {
    INFO("they claim " << claim);
    Pair pair(5);
    pair.SetOthersClaim(claim);
    pair.Run(seldom, 120);
    CHECK(pair.Settled() == Mode::kHeld);
    CHECK(pair.CostPercent(Mode::kHeldWide) <= 100);
  }
}

TEST_CASE("what holding costs the others is measured in the same pairs") {
  struct Row {
    const char* name;
    Behaviour behaviour;
    Mode mode;
    double least, most;  // percent
  };
  for (const Row& row :
       {Row{"it always works", {}, Mode::kFree, 90, 100},
        Row{"it works for a fourth of the time", {.pause_us = 30'000}, Mode::kFree, 18, 32},
        Row{"it seldom works, and they have another window",
            {.launches = 1, .held_us = 700, .late_for_window = 0, .others_gain = 0.15, .pause_us = 50'000},
            Mode::kHeldWide,
            8,
            18}}) {
    INFO(row.name);
    Pair pair(5);
    pair.Run(row.behaviour, 60);
    CHECK(pair.Settled() == row.mode);
    CHECK(pair.CostPercent(row.mode) > row.least);
    CHECK(pair.CostPercent(row.mode) < row.most);
  }
}

TEST_CASE("a wide window between bursts is also tried beside several others, if seldom two of them work at a time") {
  const Behaviour seldom{.launches = 1, .held_us = 700, .beside_us = 7000, .late_for_window = 0, .pause_us = 50'000};
  const auto run = [&seldom](Pair& pair, double part, int seconds) {
    for (int second = 0; second < seconds; ++second) {
      pair.SetWorks(2, true);
      pair.Run(seldom, part);
      pair.SetWorks(2, part == 1);
      pair.Run(seldom, 1 - part);
    }
  };
  struct Row {
    double part;  // of the time, in which the second one has work
    Mode settled;
  };
  for (const Row& row : {Row{0.1, Mode::kHeldWide}, Row{0.4, Mode::kHeld}, Row{1, Mode::kHeld}}) {
    INFO("the second one works for " << row.part << " of the time");
    Pair pair(5);
    pair.AddOther(3);
    run(pair, row.part, 60);
    CHECK(pair.Settled() == row.settled);
  }
  SECTION("it ends once they do") {
    Pair pair(5);
    pair.AddOther(3);
    run(pair, 0.1, 60);
    REQUIRE(pair.InForce() == Mode::kHeldWide);
    run(pair, 0.4, 3);
    CHECK(pair.InForce() == Mode::kHeldWide);
    run(pair, 1, 3);
    CHECK(pair.InForce() == Mode::kHeld);
  }
}

}  // namespace
}  // namespace xschedd::policy
