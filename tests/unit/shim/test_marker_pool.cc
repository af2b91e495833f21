// The markers of a device: which is taken next, that none is taken twice, and that the lock is let go for the runtime.
#include <string>
#include <vector>

#include "client-shim/core/marker_pool.h"
#include "tests/catch.h"
#include "tests/unit/shim/fake_vendor.h"

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
  Vendor vendor{};  // one that makes no marker
  vendor.exchange_capture_mode = [](int mode) { return mode; };
  vendor.create_marker = [](int) -> void* { return nullptr; };
  std::mutex mutex;
  std::unique_lock lock(mutex);
  char places[4];
  const auto marker = [&places](int number) -> void* { return number == 0 ? nullptr : &places[number]; };
  for (const Case& each : cases) {
    CAPTURE(std::string(each.name));
    MarkerPool pool(0, &vendor);
    for (const Step& step : each.steps) {
      if (step.what == 'g') pool.Give(marker(step.marker));
      if (step.what == 't') CHECK(pool.UnlockToTake(lock) == marker(step.marker));
      if (step.what == 'd') pool.Drop();
    }
  }
}

TEST_CASE("where none is free one is made, and recorded with the lock let go", "[marker_pool]") {
  FakeVendor vendor;
  MarkerPool pool(0, vendor.Table());
  std::mutex mutex;
  std::unique_lock lock(mutex);
  void* const marker = pool.UnlockToTake(lock);
  REQUIRE(marker != nullptr);
  CHECK(lock.owns_lock());
  bool is_free = false;
  vendor.while_recording = [&] {
    is_free = mutex.try_lock();
    if (is_free) mutex.unlock();
  };
  CHECK(pool.UnlockToRecord(lock, marker, nullptr));
  CHECK(is_free);
  CHECK(lock.owns_lock());
  CHECK(vendor.is_relaxed_in_calls);
  CHECK_FALSE(pool.IsFailing());
  vendor.refuses_to_record = true;
  CHECK_FALSE(pool.UnlockToRecord(lock, marker, nullptr));
  CHECK(lock.owns_lock());
  CHECK(pool.IsFailing());
}
