// What a window admits, what it shows, and when a marker is due.
#include "client-shim/core/window.h"
#include "tests/catch.h"

using namespace xschedd::shim;

namespace {
DurationEstimate Measured(std::uint64_t ns) {
  DurationEstimate estimate;
  estimate.Add(ns, 1);
  return estimate;
}
}  // namespace

TEST_CASE("a window of no length lets everybody in", "[window]") {
  CHECK(HasRoom(Window{0, 0}, InFlight{1000, 1'000'000'000}, 0));
  CHECK(LaunchLimit(Window{0, 0}, Measured(1000)) == kUnlimited);
}

TEST_CASE("a launch of unknown cost is let in at the floor only", "[window]") {
  CHECK(HasRoom(Window{500, 3}, InFlight{2, 2}, 0));
  CHECK_FALSE(HasRoom(Window{500, 3}, InFlight{3, 3}, 0));
  CHECK(HasRoom(Window{500, 0}, InFlight{0, 0}, 0));  // never none
  CHECK_FALSE(HasRoom(Window{500, 0}, InFlight{1, 1}, 0));
  // What it weighs fills the window at the floor, so that a short one does not slip in beside it.
  CHECK(WeightNs(Window{500, 1}, 0) == 500'000);
  CHECK(WeightNs(Window{500, 4}, 0) == 125'000);
  CHECK(WeightNs(Window{500, 4}, 7) == 7);
}

TEST_CASE("launches of known cost are let in while their sum fits", "[window]") {
  CHECK(HasRoom(Window{500, 1}, InFlight{4, 400'000}, 100'000));
  CHECK_FALSE(HasRoom(Window{500, 1}, InFlight{4, 400'001}, 100'000));
  CHECK(HasRoom(Window{500, 1}, InFlight{99, 495'000}, 5'000));
  CHECK_FALSE(HasRoom(Window{500, 1}, InFlight{1, 5'000}, 50'000'000));
  CHECK(HasRoom(Window{500, 2}, InFlight{1, 50'000'000}, 50'000'000));  // the floor
}

TEST_CASE("what is shown is how many launches fit at the average", "[window]") {
  CHECK(LaunchLimit(Window{500, 1}, Measured(100'000)) == 5);
  CHECK(LaunchLimit(Window{500, 2}, Measured(1'000'000)) == 2);
  CHECK(LaunchLimit(Window{500, 0}, Measured(1'000'000)) == 1);
  CHECK(LaunchLimit(Window{500, 3}, DurationEstimate{}) == 3);
  CHECK(LaunchLimit(Window{500, 1}, Measured(0)) == 500'000);  // too short for the clock
}

TEST_CASE("a marker is due twice in a window, behind a millisecond of work, and after two of time", "[window]") {
  const Window window{500, 1};
  CHECK_FALSE(IsMarkerDue(window.us, 100'000, 100'000, 0));
  CHECK(IsMarkerDue(window.us, 200'000, 100'000, 0));
  CHECK(IsMarkerDue(window.us, 200'000, 200'000, 0));  // two fit: behind each
  CHECK_FALSE(IsMarkerDue(window.us, 200'000, 5'000, 0));
  CHECK(IsMarkerDue(window.us, 250'000, 5'000, 0));
  CHECK(IsMarkerDue(window.us, 50'000'000, 50'000'000, 0));
  CHECK_FALSE(IsMarkerDue(0, kMarkerCostNs - 1, 1, kMarkerAgeNs - 1));
  CHECK(IsMarkerDue(0, kMarkerCostNs, 1, 0));
  CHECK(IsMarkerDue(0, 0, 0, kMarkerAgeNs));
}

TEST_CASE("the average follows a change without jumping at one launch", "[window]") {
  DurationEstimate estimate;
  CHECK_FALSE(estimate.HasValue());
  estimate.Add(1000, 10);
  CHECK(estimate.AverageNs() == 100);
  estimate.Add(90'000, 1);
  CHECK(estimate.AverageNs() == (100 * 7 + 90'000) / 8);
  for (int i = 0; i < 60; ++i)
    estimate.Add(500, 1);
  CHECK(estimate.AverageNs() < 1000);
  estimate.Add(5, 0);  // nothing measured: no change, no division
  CHECK(estimate.AverageNs() < 1000);
}
