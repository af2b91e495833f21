// A measured result of holding applies to the others that were there: how many, which, and for how long.
#include <algorithm>

#include "tests/unit/daemon/policy_pair.h"

namespace xschedd::policy {
namespace {

using namespace test;

TEST_CASE("the tolerance counts once for each of the others that would always be held, up to four") {
  for (const std::uint32_t others : {1u, 2u, 4u, 7u}) {
    for (const double percent : {4.0, 9.0, 18.0, 25.0}) {
      INFO(others << " others, " << percent << " % slower");
      Pair pair(5);
      for (std::uint32_t i = 1; i < others; ++i)
        pair.AddOther(10 + i);
      pair.Run({.beside_us = 100 + percent, .noise = 0.02}, 60);
      CHECK(pair.Settled() == (percent < 5 * std::min(others, 4u) ? Mode::kFree : Mode::kHeld));
    }
  }
}

TEST_CASE("a result beside one client does not hold beside four") {
  for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
    INFO("seed " << seed);
    Pair pair(5, seed);
    pair.Run({.beside_us = 110, .noise = 0.05}, 60);
    CHECK(pair.Settled() == Mode::kHeld);
    for (std::uint64_t id : {11, 12, 13})
      pair.AddOther(id);
    // Beside four it may be a fifth slower, and is slower than that.
    pair.Run({.beside_us = 130, .noise = 0.05}, 20);
    CHECK(pair.Settled() == Mode::kHeld);
  }
}

TEST_CASE("a result beside one neighbour does not hold beside the next, nor below another answer of a group above") {
  const bool is_above = GENERATE(false, true);
  for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
    INFO("seed " << seed << (is_above ? ", above" : ", below"));
    Pair pair(5, seed);
    if (is_above) pair.SetAnswerAbove(Mode::kHeld);
    pair.Run(Chat(2000, 300), 200);
    REQUIRE(pair.Settled() == Mode::kWaitsWide);
    // By so little that no pair contradicts the result.
    if (is_above) {
      pair.SetAnswerAbove(Mode::kFree);
    } else {
      pair.ReplaceOther(300);
    }
    pair.Run(Chat(2000, 1000), 40);
    CHECK(pair.Settled() == Mode::kWaitsWider);
  }
}

TEST_CASE("what is measured anew for other work is not measured again for neighbours that were there already") {
  const Behaviour start{.launches = 1, .held_us = 12'000, .beside_us = 12'000, .late_for_window = 0, .pause_us = 30};
  const Behaviour decode{
      .launches = 1, .held_us = 750, .beside_us = 3100, .pause_us = 30, .bursts = 16, .rest_us = 88'000};
  for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
    INFO("seed " << seed);
    Pair pair(5, seed);
    pair.Run(start, 20);
    REQUIRE(pair.Settled() == Mode::kFree);
    // Another one each tenth of a second, until it is measured anew.
    for (std::uint64_t client = 300; pair.IsKnown(Mode::kFree); ++client) {
      pair.ReplaceOther(client);
      pair.Run(decode, 0.1);
    }
    pair.Run(decode, 7);
    CHECK(pair.Settled() == Mode::kHeld);
    for (int i = 0; i < 80; ++i) {
      pair.Run(decode, 0.1);
      CHECK(pair.IsKnown(Mode::kFree));
    }
  }
}

TEST_CASE("neighbours that come and go while nothing is measured delay nothing") {
  Pair pair(5);
  // Holding costs next to nothing.
  const Behaviour seldom{.launches = 1, .held_us = 700, .beside_us = 700, .pause_us = 50'000};
  for (std::uint64_t client = 300; client < 340; ++client) {
    pair.ReplaceOther(client);
    pair.Run(seldom, 2);
  }
  pair.Run({}, 20);
  REQUIRE(pair.Settled() == Mode::kFree);
  pair.ReplaceOther(400);
  pair.Run({.beside_us = 110, .noise = 0.02}, 12);
  CHECK(pair.Settled() == Mode::kHeld);
}

TEST_CASE("until measured, four others allow no more than one") {
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
  CHECK(pair.Settled() == Mode::kFree);
}

TEST_CASE("the answer outlives a hold of its group") {
  Pair pair(5);
  pair.Run({}, 60);
  REQUIRE(pair.Settled() == Mode::kFree);
  pair.SetHold(true);
  CHECK(pair.Settled() == Mode::kFree);
  pair.SetHold(false);
  pair.Run({}, 1);
  CHECK(pair.Settled() == Mode::kFree);
}

TEST_CASE("time in which a group is on hold does not count as others' working time") {
  Pair pair(5);
  pair.Run({}, 60);
  const float before = pair.Longest();
  REQUIRE(before > 0.9F);
  pair.SetHold(true);
  pair.Pass(10);
  pair.SetHold(false);
  pair.Run({}, 0.1);
  CHECK(pair.Longest() == before);
}

TEST_CASE("the answer stays while it is measured again beside another neighbour") {
  Pair pair(5);
  pair.Run({}, 60);
  REQUIRE(pair.Settled() == Mode::kFree);
  pair.ForgetTimes();
  pair.ReplaceOther(300);
  pair.Run({}, 20);
  CHECK(pair.Changes() == 0);
  CHECK(pair.BesidePart() > 0.85);
}

TEST_CASE("neighbours that change nothing are measured less and less often") {
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

}  // namespace
}  // namespace xschedd::policy
