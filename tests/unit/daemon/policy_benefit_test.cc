// Whether holding helps: what is learnt about an important group from its pace while others are held and while they
// run.
#include "tests/unit/daemon/policy_pair.h"

namespace xschedd::policy {
namespace {

using namespace test;

// Ten times as long as Chat.
Behaviour Long(double waits_beside_us, double waits_then_held_us) {
  Behaviour chat = Chat(waits_beside_us, waits_then_held_us, {.noise = 0.03});
  chat.launches *= 10;
  chat.waits_held_us *= 10;
  return chat;
}

TEST_CASE("others run beside an important group unless holding them makes it faster") {
  struct Row {
    const char* name;
    Behaviour behaviour;
    Mode settled;
  };
  const Row rows[] = {
      {"bound by its host", {}, Mode::kFree},
      {"the same, on a core whose speed changes by half", {.noise = 0.2, .drift = 0.3}, Mode::kFree},
      {"a loop that never synchronises", {.launches = 1'000'000'000, .pause_us = 0}, Mode::kFree},
      {"a little faster beside others", {.beside_us = 95}, Mode::kFree},
      {"requests whose end no call shows, so that it is known late where nobody is held for them",
       {.launches = 1, .held_us = 1200, .beside_us = 1200, .pause_us = 9000, .known_later_us = 1500},
       Mode::kFree},
      {"waits for others at its end", Chat(2000, 300), Mode::kWaitsWide},
      {"the same, on a core whose speed changes by half", Chat(2000, 300, kUnsteady), Mode::kWaitsWide},
      {"waits for others, but not for long, on such a core", Chat(400, 300, kUnsteady), Mode::kFree},
      {"waits for others, and a little too long", Chat(850, 150), Mode::kWaitsHalf},
      {"the same, in blocks of one wait each", Long(8000, 1500), Mode::kWaitsHalf},
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
      // Its only burst began before anything was tried, so a window between bursts is without effect.
      {"a loop that others slow down", {.launches = 1'000'000'000, .beside_us = 180, .pause_us = 0}, Mode::kHeldWide},
      {"short requests", {.launches = 1, .held_us = 700, .beside_us = 7000}, Mode::kHeld},
      {"few requests: holding costs next to nothing",
       {.launches = 1, .held_us = 700, .beside_us = 700, .pause_us = 50'000},
       Mode::kHeld},
      {"the same, and what is in flight gives way at once",
       {.launches = 1, .held_us = 700, .beside_us = 7000, .late_for_window = 0, .pause_us = 50'000},
       Mode::kHeldWide},
      {"the same, and it delays a request by a tenth of itself",
       {.launches = 1, .held_us = 700, .beside_us = 7000, .late_for_window = 0.1, .pause_us = 50'000},
       Mode::kHeld},
      {"sixteen waits a request, of which more in flight delays the first",
       {.launches = 1,
        .held_us = 100,
        .beside_us = 100,
        .late_for_window = 0.6,
        .is_late_while_it_waits = true,
        .waits_held_us = 650,
        .waits_beside_us = 3000,
        .waits_then_held_us = 650,
        .pause_us = 30,
        .bursts = 16,
        .rest_us = 80'000},
       Mode::kWaitsWider},
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

TEST_CASE("below a group that waits, the widest window that is not too slow is taken") {
  // Others delay it by what they have in flight when it begins to wait.
  struct Row {
    double us_of_window;
    Mode settled;
  };
  // A burst of 10.6 ms while others are held.
  for (const Row& row : {Row{0.2, Mode::kWaitsWide}, Row{0.31, Mode::kWaitsWider}, Row{0.41, Mode::kWaitsMedium},
                         Row{0.55, Mode::kWaitsNarrow}, Row{1.3, Mode::kWaitsNarrowest}, Row{4.0, Mode::kHeld}}) {
    INFO(row.us_of_window << " us for each us of window");
    Behaviour chat = Chat(5000, 0, {.noise = 0.2});
    chat.waits_for_window = row.us_of_window;
    Pair pair(5);
    pair.Run(chat, 60);
    CHECK(pair.Settled() == row.settled);
  }
}

TEST_CASE("the mode is found soon, also above one that seldom has requests") {
  // Each request takes 8.5 ms. What others have in flight when it begins to wait makes the wait longer.
  struct Row {
    std::uint64_t rest_us;
    double us_of_window;
    Mode settled;
    double within_s;
  };
  for (const Row& row : {Row{20'000, 0.245, Mode::kWaitsWider, 15}, Row{20'000, 0.43, Mode::kWaitsNarrow, 15},
                         Row{20'000, 1, Mode::kWaitsNarrowest, 15}, Row{90'000, 0.245, Mode::kWaitsWider, 40},
                         Row{90'000, 0.32, Mode::kWaitsMedium, 40}, Row{90'000, 0.43, Mode::kWaitsNarrow, 40},
                         Row{90'000, 1, Mode::kWaitsNarrowest, 40}}) {
    INFO("a pause of " << row.rest_us << " us, " << row.us_of_window << " us for each us of window");
    std::uint32_t right = 0;
    for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
      Behaviour behaviour = Chat(150 + 3'500 * row.us_of_window, 0, kUnsteady);
      behaviour.launches = 550;
      behaviour.waits_for_window = row.us_of_window;
      behaviour.pause_us = row.rest_us;
      Pair pair(5, seed);
      pair.Run(behaviour, row.within_s);
      right += pair.Settled() == row.settled ? 1u : 0u;
    }
    CHECK(10 * right >= 9 * Seeds(10));
  }
}

TEST_CASE("the cheapest mode known so far is in force while the search goes on") {
  Behaviour behaviour = Chat(2'000, 0, kUnsteady);
  behaviour.launches = 550;
  behaviour.waits_for_window = 0.35;
  behaviour.pause_us = 90'000;
  std::uint32_t open = 0;
  for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
    Pair pair(5, seed);
    pair.Run(behaviour, 25);
    open += IsWhileItWaits(pair.Settled()) ? 1u : 0u;
  }
  CHECK(10 * open >= 9 * Seeds(10));
}

TEST_CASE("the host's pauses between two bursts count, time without a request does not") {
  struct Row {
    std::uint64_t pause_us;
    bool is_free;  // others run beside it without a limit
  };
  // Beside others a burst of 10.6 ms is 5.7 % longer: with pauses of 2.4 ms its work is 4.6 % longer.
  for (const Row& row : {Row{100, false}, Row{2'400, true}, Row{40'000, false}}) {
    for (const std::uint32_t seed : {1u, 2u, 3u}) {
      INFO("pause " << row.pause_us << " us, seed " << seed);
      Behaviour behaviour = Chat(700, 700, {.noise = 0.01});
      behaviour.pause_us = row.pause_us;
      Pair pair(5, seed);
      pair.Run(behaviour, 60);
      CHECK((pair.Settled() == Mode::kFree) == row.is_free);
    }
  }
}

TEST_CASE("the pause after a burst is no work, however late its end is known") {
  for (const std::uint64_t known_us : {0, 150, 250, 5000}) {
    for (const double beside_us : {100, 125}) {
      INFO(beside_us << " us, known after " << known_us << " us");
      Pair pair(5);
      pair.Run({.beside_us = beside_us, .pause_us = 30'000, .known_us = known_us}, 60);
      CHECK(pair.Settled() == (beside_us == 100 ? Mode::kFree : Mode::kHeld));
    }
  }
}

TEST_CASE("of the modes that hold no client, the freest that is not too slow is taken") {
  struct Row {
    double percent;  // slower for each ms that others may have in flight
    Mode settled;
  };
  // 2, 4 and 16 ms of them.
  for (const Row& row :
       {Row{0.1, Mode::kFree}, Row{0.6, Mode::kBesideWide}, Row{1.8, Mode::kBeside}, Row{5, Mode::kHeld}}) {
    INFO(row.percent << " % for each ms in flight");
    Pair pair(5);
    pair.Run({.beside_for_window = row.percent / 1000, .noise = 0.02}, 90);
    CHECK(pair.Settled() == row.settled);
  }
}

TEST_CASE("what several others may cost depends on how long they would be held") {
  // Requests of 3.3 ms that are slower beside five others, of which four count.
  struct Row {
    std::uint64_t each_ms;
    std::uint32_t tolerance_percent;
    double percent;
    Mode settled;
  };
  for (const Row& row : {
           Row{4, 5, 12, Mode::kFree},    // they would be held for 82 % of the time: 16 % allowed
           Row{4, 5, 21, Mode::kHeld},    // likewise
           Row{10, 5, 12, Mode::kHeld},   // for 33 %: 6.6 %
           Row{10, 5, 4, Mode::kFree},    // likewise
           Row{50, 5, 4, Mode::kFree},    // for 6.6 %: 5 %, as beside one
           Row{50, 5, 12, Mode::kHeld},   // likewise
           Row{50, 20, 4, Mode::kFree},   // likewise: 6.6 %, what they gain
           Row{50, 20, 12, Mode::kHeld},  // likewise
       }) {
    INFO("one each " << row.each_ms << " ms, " << row.percent << " % slower, tolerance " << row.tolerance_percent);
    Pair pair(row.tolerance_percent);
    for (std::uint64_t id = 11; id <= 14; ++id)
      pair.AddOther(id);
    pair.Run({.launches = 33, .beside_us = 100 + row.percent, .noise = 0.02, .pause_us = row.each_ms * 1000 - 3300},
             120);
    CHECK(pair.Settled() == row.settled);
  }
}

TEST_CASE("an answer that may cost less now, since others would be held less, is looked at soon") {
  const Behaviour slower{.beside_us = 112, .noise = 0.02};
  Behaviour seldom = slower;
  seldom.pause_us = 90'000;
  for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
    INFO("seed " << seed);
    Pair pair(5, seed);
    for (std::uint64_t id : {11, 12, 13})
      pair.AddOther(id);
    pair.Run(slower, 120);
    CHECK(pair.Settled() == Mode::kFree);
    pair.Run(seldom, 20);
    CHECK(pair.Settled() == Mode::kHeld);
  }
}

TEST_CASE("time in which no client could be held brings no trial nearer") {
  const Behaviour steady{.noise = 0.03};
  Pair pair(5);
  pair.Run(steady, 60);
  REQUIRE(pair.Settled() == Mode::kFree);
  pair.ForgetTimes();
  for (int i = 0; i < 50; ++i) {
    pair.Rest(40);
    pair.Run(steady, 1);
  }
  CHECK(pair.BesidePart() > 0.97);
}

TEST_CASE("with a deadline, being early counts for nothing and being late counts") {
  struct Row {
    const char* name;
    std::uint64_t deadline_ms;
    double beside_us;
    Mode settled;
  };
  // Bursts of 10 ms while others are held.
  const Row rows[] = {
      {"twice as slow, and in time", 30, 200, Mode::kFree},
      {"twice as slow, and too late; in time with what was in flight before", 15, 200, Mode::kHeldWide},
      {"twice as slow, and too late in any case", 13, 200, Mode::kHeld},
      {"late either way, and no slower", 5, 100, Mode::kFree},
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

TEST_CASE("what is known is kept while the tolerance is 0") {
  Pair pair(5);
  pair.Run({}, 20);
  REQUIRE(pair.Settled() == Mode::kFree);
  pair.SetTolerance(0);
  pair.ForgetTimes();
  pair.Run({}, 5);
  CHECK(pair.BesidePart() == 0);
  pair.SetTolerance(5);
  pair.ForgetTimes();
  pair.Run({}, 1);
  CHECK(pair.BesidePart() > 0.7);
}

TEST_CASE("the answer follows a tenant that changes, in both directions") {
  Pair pair(5);
  pair.Run({}, 60);
  REQUIRE(pair.Settled() == Mode::kFree);
  pair.Run({.beside_us = 200}, 150);
  CHECK(pair.Settled() == Mode::kHeld);
  pair.Run({}, 300);
  CHECK(pair.Settled() == Mode::kFree);
}

TEST_CASE("a program that others slow down after a while is found out within a minute or two") {
  struct Row {
    double noise;
    double beside_us;
    double within_s;
  };
  for (const Row& row : {Row{0.03, 120, 60}, Row{0.06, 120, 60}, Row{0.1, 120, 90}, Row{0.03, 112, 60},
                         Row{0.06, 112, 90}, Row{0.1, 112, 150}}) {
    INFO("noise " << row.noise << ", then " << row.beside_us << " us");
    std::uint32_t right = 0;
    for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
      Behaviour loop{.launches = 300, .noise = row.noise};
      Pair pair(5, seed);
      pair.Run(loop, 20);
      loop.beside_us = row.beside_us;
      pair.Run(loop, row.within_s);
      right += HoldsThroughout(pair.Settled()) ? 1u : 0u;
    }
    CHECK(10 * right >= 9 * Seeds(10));
  }
}

TEST_CASE("others are not held while a mode is sought in place of one that turned out a little too slow") {
  struct Row {
    double waits_beside_us;  // in requests of 7.5 ms
    bool is_held;
  };
  for (const Row& row : {Row{900, false}, Row{20'000, true}}) {
    INFO("waits " << row.waits_beside_us << " us beside others");
    std::uint32_t right = 0;
    for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
      Behaviour requests{.launches = 333,
                         .held_us = 22,
                         .beside_us = 22,
                         .waits_held_us = 150,
                         .waits_beside_us = 200,
                         .waits_then_held_us = 200};
      Pair pair(5, seed);
      pair.Run(requests, 20);
      REQUIRE(pair.Settled() == Mode::kFree);
      requests.waits_beside_us = row.waits_beside_us;
      requests.waits_then_held_us = 600;
      for (int quarters = 0; quarters < 400 && pair.Settled() == Mode::kFree; ++quarters)
        pair.Run(requests, 0.25);
      CHECK(pair.Settled() != Mode::kFree);
      right += HoldsThroughout(pair.Settled()) == row.is_held ? 1u : 0u;
    }
    CHECK(10 * right >= 9 * Seeds(10));
  }
}

TEST_CASE("a search is under way until nothing is left to try, and again when the answer turns out wrong") {
  std::uint32_t searches = 0;
  for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
    Pair pair(5, seed);
    pair.Run({}, 20);
    CHECK(pair.Settled() == Mode::kFree);
    CHECK_FALSE(pair.IsSearching());
    // From now on it needs the device when it waits, so that only a mode in the middle of the list is good enough.
    Behaviour waits = Chat(20'000, 0);
    waits.waits_for_window = 0.35;
    while (pair.Settled() == Mode::kFree)
      pair.Run(waits, 0.1);
    searches += pair.IsSearching() ? 1u : 0u;
    CHECK(pair.IsSettled());  // as before
    for (int seconds = 0; seconds < 300 && pair.IsSearching(); ++seconds)
      pair.Run(waits, 1);
    CHECK_FALSE(pair.IsSearching());
  }
  CHECK(searches == Seeds(10));
}

TEST_CASE("a noisy program beside which others may run is not measured anew all the time") {
  for (const double beside_us : {100.0, 102.0}) {
    INFO(beside_us << " us");
    double held = 0;
    for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
      Pair pair(5, seed);
      pair.Run({.beside_us = beside_us}, 60);
      pair.ForgetTimes();
      pair.Run({.beside_us = beside_us}, 600);
      held += 1 - pair.BesidePart();
    }
    CHECK(held / Seeds(10) < 0.01);
  }
}

TEST_CASE("an answer from before is tried first, so that a wrong one does not last") {
  // Requests of 16 bursts, ten a second, as decoding; the first burst waits for what others have in flight.
  const Behaviour decode{
      .launches = 1, .held_us = 750, .beside_us = 3100, .pause_us = 30, .bursts = 16, .rest_us = 88'000};
  for (const Mode wrong : {Mode::kHeldWide, Mode::kBeside, Mode::kFree}) {
    Pair pair(5);
    pair.Recall(wrong);
    REQUIRE(pair.Settled() == wrong);
    pair.Run(decode, 2.5);
    CHECK(pair.Settled() == Mode::kHeld);
  }
}

TEST_CASE("what was measured while a program started does not last") {
  // Its first work: long kernels that others do not delay.
  const Behaviour start{.launches = 1, .held_us = 12'000, .beside_us = 12'000, .late_for_window = 0, .pause_us = 30};
  const Behaviour decode{
      .launches = 1, .held_us = 750, .beside_us = 3100, .pause_us = 30, .bursts = 16, .rest_us = 88'000};
  for (const double start_s : {1.0, 2.0, 4.0, 30.0, 120.0}) {
    for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
      INFO(start_s << " s, seed " << seed);
      Pair chats(5, seed);
      chats.Run(start, start_s);
      chats.Rest(5);
      chats.Run(Chat(1500, 200), 10);
      CHECK(!IsBeside(chats.Settled()));
      Pair decodes(5, seed);
      decodes.Run(start, start_s);
      decodes.Rest(5);
      decodes.Run(decode, 12);
      CHECK(decodes.Settled() == Mode::kHeld);
    }
  }
}

TEST_CASE("what others spoil for some seconds does not keep them held for minutes") {
  // Twice as long beside them at first, as while they start, then hardly longer.
  struct Row {
    std::uint64_t pause_us;
    double within_s;
  };
  for (const Row& row : {Row{3'000, 120}, Row{43'000, 300}, Row{93'000, 500}}) {
    for (const double spoilt_s : {1.0, 2.0, 3.0, 5.0}) {
      INFO("pauses of " << row.pause_us << " us, spoilt for " << spoilt_s << " s");
      std::uint32_t right = 0;
      for (std::uint32_t seed = 1; seed <= Seeds(20); ++seed) {
        Pair pair(5, seed);
        pair.Run({.launches = 333, .held_us = 21, .beside_us = 42, .pause_us = row.pause_us}, spoilt_s);
        pair.Run({.launches = 333, .held_us = 21, .beside_us = 21.3, .pause_us = row.pause_us}, row.within_s);
        right += IsBeside(pair.Settled()) ? 1u : 0u;
      }
      CHECK(10 * right >= 9 * Seeds(20));
    }
  }
}

TEST_CASE("what a program went through while it started does not put off its answer") {
  // Its first work, which others delay: few launches for which its host waits, or long kernels one after the other.
  // Then requests of 7 ms, twenty a second, which they do not delay.
  const Behaviour starts[] = {
      {.launches = 2,
       .held_us = 100,
       .waits_held_us = 25'000,
       .waits_beside_us = 60'000,
       .waits_then_held_us = 60'000,
       .pause_us = 60'000},
      {.launches = 1, .held_us = 12'000, .beside_us = 40'000, .pause_us = 30},
  };
  const Behaviour requests{.launches = 333, .held_us = 21, .beside_us = 21, .pause_us = 43'000};
  for (const Behaviour& start : starts) {
    for (const double start_s : {0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0}) {
      INFO(start.launches << " launches, " << start_s << " s");
      std::uint32_t right = 0;
      for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
        Pair pair(5, seed);
        pair.Run(start, start_s);
        pair.Rest(5);
        pair.Run(requests, 25);
        right += pair.Settled() == Mode::kFree ? 1u : 0u;
      }
      CHECK(20 * right >= 19 * Seeds(10));
    }
  }
}

TEST_CASE("a program whose work is of several kinds is not measured anew all the time") {
  for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
    Pair pair(5, seed);
    for (int i = 0; i < 1'000; ++i)
      pair.Run(i % 2 == 0 ? Behaviour{.launches = 1, .held_us = 3000, .beside_us = 3900} : Behaviour{.beside_us = 130},
               0.2);
    INFO("seed " << seed << ", beside for " << pair.BesidePart() << " of its time");
    CHECK(pair.Settled() == Mode::kHeld);
    CHECK(pair.BesidePart() < 0.1);  // 0.4 if it were
    CHECK(pair.Changes() == 0);
  }
}

TEST_CASE("a close answer does not flap") {
  for (std::uint32_t seed = 1; seed <= Seeds(10); ++seed) {
    Pair pair(5, seed);
    pair.Run({.beside_us = 105, .noise = 0.3, .drift = 0.4}, 600);
    INFO("changes in ten minutes: " << pair.Changes());
    CHECK(pair.Changes() <= 20);
  }
}

TEST_CASE("a strict group always holds the others") {
  Pair pair(5);
  pair.SetStrict(true);
  pair.Run({}, 60);
  CHECK(pair.Settled() == Mode::kHeld);
  CHECK(pair.BesidePart() == 0);
  pair.SetStrict(false);
  pair.Run({}, 20);
  CHECK(pair.Settled() == Mode::kFree);
}

TEST_CASE("without a tolerance others are always held") {
  Pair pair(0);
  pair.Run({}, 60);
  CHECK(pair.Settled() == Mode::kHeld);
  CHECK(pair.BesidePart() == 0);
}

TEST_CASE("no client runs beside one whose launches are not counted") {
  Pair pair(5);
  pair.Run({.launches = 0}, 1);
  CHECK(pair.BesidePart() == 0);
}

}  // namespace
}  // namespace xschedd::policy
