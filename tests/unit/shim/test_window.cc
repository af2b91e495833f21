// Launches that a window allows, and the spacing of markers.
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

TEST_CASE("a window of no length allows any number of launches", "[window]") {
  CHECK(LaunchLimit(Window{0, 0}, Measured(1000)) == kUnlimited);
  CHECK(LaunchLimit(Window{0, 4}, DurationEstimate{}) == kUnlimited);
  CHECK(MarkerSpacing(kUnlimited) == 0);
}

TEST_CASE("before anything is measured only the floor may be in flight", "[window]") {
  CHECK(LaunchLimit(Window{500, 0}, DurationEstimate{}) == 1);
  CHECK(LaunchLimit(Window{500, 3}, DurationEstimate{}) == 3);
}

TEST_CASE("launches that fit into the window by measured duration", "[window]") {
  CHECK(LaunchLimit(Window{500, 1}, Measured(100'000)) == 5);
  CHECK(LaunchLimit(Window{500, 2}, Measured(1'000'000)) == 2);  // longer than the window: the floor
  CHECK(LaunchLimit(Window{500, 0}, Measured(1'000'000)) == 1);  // never none
  CHECK(LaunchLimit(Window{500, 1}, Measured(0)) == 500'000);    // too short for the clock
}

TEST_CASE("two markers are about half a window apart", "[window]") {
  CHECK(MarkerSpacing(1) == 1);
  CHECK(MarkerSpacing(2) == 1);
  CHECK(MarkerSpacing(5) == 2);
  CHECK(MarkerSpacing(100) == 50);
}

TEST_CASE("the estimate follows a change without jumping at one launch", "[window]") {
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
