// What the daemon says of levers: the benefit of holding, how many have their turn at a time, and who joins.
#include "daemon/scheduler/benefit_words.h"
#include "daemon/scheduler/filling_words.h"
#include "tests/catch.h"

using namespace xschedd;

TEST_CASE("the benefit of holding is described in words, with its figures") {
  const auto memory = [](float typical, float tail, std::uint32_t pairs, bool settled, bool beside) {
    policy::BenefitMemory known;
    auto& beside_them = known.Of(policy::BenefitMemory::Mode::kFree);
    beside_them.pairs = pairs;
    beside_them.typical = typical;
    beside_them.tail = tail;
    known.wait_ns = settled ? 2 * policy::kNsPerS : 0;
    known.searches = !settled;
    known.cost = 0.44F;
    known.longest = 1;
    known.settled = beside ? policy::BenefitMemory::Mode::kFree : policy::BenefitMemory::Mode::kHeld;
    return known;
  };
  CHECK(BenefitText({}, 5).empty());
  CHECK(BenefitText(memory(0.01F, 0, 32, true, true), 0).empty());
  CHECK(BenefitText(memory(0.01F, 0, 32, true, true), 5) ==
        "it lets those below it run beside it: holding them would make it 1 % faster");
  CHECK(BenefitText(memory(-0.2F, 0, 32, true, true), 5) ==
        "it lets those below it run beside it: holding them would make it 0 % faster");
  CHECK(BenefitText(memory(0.2F, 0, 3, false, false), 5) ==
        "it holds those below it; whether that helps is being measured: beside them it was 22 % slower "
        "(3 comparisons)");
  CHECK(BenefitText(memory(0.4F, 0, 1, false, false), 5) ==
        "it holds those below it; whether that helps is being measured: beside them it was at least 49 % slower "
        "(1 comparison)");
  policy::BenefitMemory seldom = memory(0.2F, 0, 3, false, false);
  seldom.longest = 0.02F;
  CHECK(BenefitText(seldom, 5) ==
        "it holds those below it, for 44 % of the time: beside them it would be 22 % slower (tolerance_percent=5)");
  CHECK(BenefitText(memory(0.02F, 0.2F, 32, true, false), 5) ==
        "it holds those below it, for 44 % of the time: beside them it would be 22 % slower (tolerance_percent=5)");
  // Its waits are no longer, but the whole time is.
  policy::BenefitMemory whole = memory(0.01F, 0, 32, true, false);
  policy::BenefitMemory::Comparison& known = whole.Of(policy::BenefitMemory::Mode::kFree);
  known.whole = 0.2F;
  known.whole_pairs = 32;
  CHECK(BenefitText(whole, 5) ==
        "it holds those below it, for 44 % of the time: beside them it would be 22 % slower (tolerance_percent=5)");
  known.whole_variance = 1;  // by chance
  CHECK(BenefitText(whole, 5) ==
        "it holds those below it, for 44 % of the time: beside them it would be 1 % slower (tolerance_percent=5)");
  policy::BenefitMemory again = memory(0.2F, 0, 32, true, false);
  again.searches = true;
  again.trial = policy::BenefitMemory::Mode::kWaitsMedium;
  CHECK(BenefitText(again, 5) ==
        "it holds those below it, for 44 % of the time: beside them it would be 22 % slower (tolerance_percent=5); "
        "a mode that costs them less is being measured");
  policy::BenefitMemory half = memory(0.1F, 0, 32, true, false);
  half.settled = policy::BenefitMemory::Mode::kWaitsHalf;
  half.Of(half.settled) = {.pairs = 32, .typical = 0.04F};
  CHECK(
      BenefitText(half, 5) ==
      "it holds those below it only every other time its host waits for the device, for 44 % of the time: holding them "
      "whenever it is busy would make it 4 % faster, and beside them it would be 11 % slower (tolerance_percent=5)");
  half.settled = policy::BenefitMemory::Mode::kWaitsWider;
  CHECK(
      BenefitText(half, 5) ==
      "it holds those below it only while its host waits for the device or is about to, for 44 % of the time: whether "
      "holding them whenever it is busy would make it faster is being measured, and beside them it would be 11 % "
      "slower (tolerance_percent=5)");
  policy::BenefitMemory wide = memory(0, 0, 0, true, false);
  wide.Of(policy::BenefitMemory::Mode::kHeldWide) = {.pairs = 32, .typical = 0.1F};
  CHECK(BenefitText(wide, 5) ==
        "it holds those below it, for 44 % of the time: with more of theirs in flight when it begins it would be 11 % "
        "slower (tolerance_percent=5)");
  CHECK(CostText(wide, 7).empty());
  wide.settled = policy::BenefitMemory::Mode::kHeldWide;
  CHECK(BenefitText(wide, 5) ==
        "it holds those below it, for 44 % of the time; less of theirs in flight when it begins would make it 11 % "
        "faster");
  CHECK(CostText(memory(0.4F, 0.3F, 32, true, false), 7) == "beside it pid 7 would be at least 49 % slower");
  CHECK(CostText(memory(0.4F, 0.3F, 3, false, false), 7).empty());
  CHECK(CostText(memory(0, 0, 32, true, true), 7).empty());
}

TEST_CASE("what holding costs the others is said with its benefit") {
  policy::BenefitMemory known;
  known.wait_ns = 2 * policy::kNsPerS;
  known.searches = false;
  known.cost = 0.44F;
  using Mode = policy::BenefitMemory::Mode;
  known.Of(Mode::kFree) = {.pairs = 32, .typical = 0.01F, .others_pairs = 32, .others_gain = 2.8F};
  known.settled = Mode::kFree;
  CHECK(BenefitText(known, 5) ==
        "it lets those below it run beside it: holding them would make it 1 % faster and cost them 94 % of their "
        "launches");
  known.settled = Mode::kHeld;
  CHECK(BenefitText(known, 5) ==
        "it holds those below it, for 44 % of the time, which costs them 94 % of their launches: beside them it would "
        "be 1 % slower (tolerance_percent=5)");
  known.settled = Mode::kWaitsWide;
  known.Of(known.settled) = {.pairs = 32, .typical = 0.005F, .others_pairs = 32, .others_gain = 2.5F};
  CHECK(BenefitText(known, 5) ==
        "it holds those below it only while its host waits for the device or is about to, for 44 % of the time: "
        "holding them whenever it is busy would make it 1 % faster and cost them 92 % of their launches, and beside "
        "them it would be 1 % slower (tolerance_percent=5)");
  known.comparisons = {};
  known.settled = Mode::kHeldWide;
  known.Of(Mode::kHeldWide) = {.pairs = 32, .typical = 0.06F, .others_pairs = 32, .others_gain = 0.15F};
  CHECK(BenefitText(known, 5) ==
        "it holds those below it, for 44 % of the time; less of theirs in flight when it begins would make it 6 % "
        "faster and cost them 14 % of their launches");
  // Hardly anything, or not known yet.
  known.Of(Mode::kHeldWide).others_gain = 0.004F;
  CHECK(BenefitText(known, 5) ==
        "it holds those below it, for 44 % of the time; less of theirs in flight when it begins would make it 6 % "
        "faster");
  known.Of(Mode::kHeldWide) = {.pairs = 3, .typical = 0.06F, .others_pairs = 3, .others_gain = 0.15F};
  CHECK(BenefitText(known, 5) ==
        "it holds those below it, for 44 % of the time; less of theirs in flight when it begins would make it 6 % "
        "faster");
}

TEST_CASE("how many have their turn at a time is said in words") {
  policy::FillingMemory memory{.groups = 2, .most = 3};
  CHECK(FillingText(memory) == "1 at a time");
  memory.gain = -0.3F;
  memory.gain_of = 2;
  CHECK(FillingText(memory) == "1 at a time: with 2 they got on 26 % more slowly than with 1");
  memory.settled = 2;
  memory.gain = 0.6F;
  CHECK(FillingText(memory) == "2 at a time: with 2 they got on 82 % faster than with 1");
  memory.joiners = 1;
  CHECK(FillingText(memory) == "2 at a time: with 2 they got on 82 % faster than with 1");
  memory.may_join = true;
  CHECK(FillingText(memory) == "2 at a time, and 1 in all turns: with 2 they got on 82 % faster than with 1");
  memory.joiners = 0;
  memory.most = 1;
  CHECK(FillingText(memory) ==
        "1 at a time, because more would delay a more important client by more than tolerance_percent");
}

TEST_CASE("who joins others' turns, and what that gave, is said in words") {
  policy::GroupMemory memory;
  memory.joins_gain = 0.357F;
  CHECK(JoinsText(memory).empty());
  memory.joins = true;
  const std::string joins =
      "it joins all others' turns instead of having its own: with that, they and it got on 43 % faster";
  CHECK(JoinsText(memory) == joins);
  policy::FillingMemory on{.groups = 3, .joiners = 1, .most = 2, .may_join = true};
  CHECK(JoinsText(memory, &on) == joins);
  const std::string not_now =
      "it can join all others' turns instead of having its own: with that, they and it got on 43 % faster; not now, "
      "since ";
  on.may_join = false;
  on.most = 1;
  CHECK(JoinsText(memory, &on) == not_now + "that would delay a more important client by more than tolerance_percent");
  on.most = 2;
  on.groups = 2;
  CHECK(JoinsText(memory, &on) == not_now + "too few others take turns");
}
