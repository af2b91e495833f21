// When markers are looked at again.
#include "client-shim/core/polling.h"
#include "tests/catch.h"

using namespace xschedd::shim;

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
