// Markers that are free: which is given next, and that none is given twice.
#include <string>
#include <vector>

#include "client-shim/core/marker_pool.h"
#include "tests/catch.h"

using namespace xschedd::shim;

TEST_CASE("markers are used again, the last that came back first", "[marker_pool]") {
  struct Step {
    char what;  // g: given back, t: taken, d: all are dropped
    int marker;
  };
  struct Case {
    const char* name;
    std::vector<Step> steps;
  };
  const Case cases[] = {
      {"none is free at first", {{'t', 0}}},
      {"one is taken once", {{'g', 1}, {'t', 1}, {'t', 0}}},
      {"the last first", {{'g', 1}, {'g', 2}, {'t', 2}, {'g', 3}, {'t', 3}, {'t', 1}, {'t', 0}}},
      {"null is no marker", {{'g', 0}, {'t', 0}}},
      {"none is left of a device that was reset", {{'g', 1}, {'g', 2}, {'d', 0}, {'t', 0}, {'g', 3}, {'t', 3}}},
  };
  char places[4];
  const auto marker = [&places](int number) -> void* { return number == 0 ? nullptr : &places[number]; };
  for (const Case& each : cases) {
    CAPTURE(std::string(each.name));
    MarkerPool pool;
    for (const Step& step : each.steps) {
      if (step.what == 'g') pool.Give(marker(step.marker));
      if (step.what == 't') CHECK(pool.Take() == marker(step.marker));
      if (step.what == 'd') pool.Drop();
    }
  }
}
