// The offset of the daemon's clock from the client's.
#include "client-shim/core/clock_offset.h"
#include "tests/catch.h"

using xschedd::shim::ClockOffset;

TEST_CASE("the daemon's clock is the client's unless its answer lies outside of the time of the call", "[clock]") {
  CHECK(ClockOffset(0, 1000, 3000) == 0);  // an old daemon
  CHECK(ClockOffset(1000, 1000, 3000) == 0);
  CHECK(ClockOffset(3000, 1000, 3000) == 0);
  CHECK(ClockOffset(1'000'000, 0, 60'000'000'000) == 0);  // stopped before it had the answer
  CHECK(ClockOffset(3001, 1000, 3000) == 1001);
  CHECK(ClockOffset(999, 1000, 3000) == -1001);
  CHECK(ClockOffset(86'400'000'002'000, 1000, 3000) == 86'400'000'000'000);
}
