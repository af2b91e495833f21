// When markers are looked at again.
#include "client-shim/core/looks.h"
#include "tests/catch.h"

using namespace xschedd::shim;

TEST_CASE("how late an end may be known follows how long the client was busy", "[looks]") {
  Watchfulness watchfulness;
  watchfulness.Begun(1'000'000'000);
  CHECK(watchfulness.LateNs(1'000'000'000) == kWatchNs);
  CHECK(watchfulness.LateNs(1'001'000'000) == kWatchNs);
  CHECK(watchfulness.LateNs(1'016'000'000) == 500'000);
  CHECK(watchfulness.LateNs(9'000'000'000) > 1'000'000);  // no more than a thousand looks a second
  CHECK(watchfulness.LateNs(9'000'000'000) < kLazyNs);
}

TEST_CASE("a pause that nobody could have used is none", "[looks]") {
  Watchfulness watchfulness;
  watchfulness.Begun(1'000'000'000);
  watchfulness.Ended(1'010'000'000);
  watchfulness.Found();
  watchfulness.Begun(1'010'100'000);
  CHECK(watchfulness.LateNs(1'032'000'000) == 1'000'000);
  watchfulness.Ended(1'032'000'000);
  watchfulness.Found();
  watchfulness.Begun(1'032'600'000);
  CHECK(watchfulness.LateNs(1'032'600'000) == 400'000);  // as much sooner as the pause was long
  watchfulness.Ended(1'033'000'000);
  watchfulness.Found();
  watchfulness.Begun(1'035'000'000);
  CHECK(watchfulness.LateNs(1'035'000'000) == kWatchNs);
}

TEST_CASE("who tells each end is only stood by, until one is found that nobody told", "[looks]") {
  Watchfulness watchfulness;
  std::uint64_t now = 1'000'000'000;
  const auto burst = [&] {
    watchfulness.Begun(now += 10'000'000);
    watchfulness.Ended(now += 100'000);
  };
  for (int i = 0; i < 7; ++i)
    burst();
  CHECK(watchfulness.LateNs(now) == kWatchNs);
  burst();
  CHECK(watchfulness.LateNs(now) == kLazyNs);
  burst();
  watchfulness.Found();
  watchfulness.Begun(now += 10'000'000);
  CHECK(watchfulness.LateNs(now) == kWatchNs);
}

TEST_CASE("a thread sleeps until the marker is nearly due, spins about that time, and sleeps again", "[looks]") {
  constexpr std::uint64_t kDue = 1'000'000'000;
  CHECK(NapNs(kDue - 500'000, kDue) == 480'000);
  CHECK(NapNs(kDue - 90'000'000, kDue) == kLongestNapNs);
  CHECK(NapNs(kDue - 69'000, kDue) == 0);
  CHECK(NapNs(kDue, kDue) == 0);
  CHECK(NapNs(kDue + 19'000, kDue) == 0);
  CHECK(NapNs(kDue + 20'000, kDue) == kShortestNapNs);
  CHECK(NapNs(kDue + 800'000, kDue) == 100'000);
  CHECK(NapNs(kDue + 90'000'000, kDue) == kLongestLateNapNs);
}
