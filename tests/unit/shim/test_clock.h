// A clock for tests in which time passes only as they say: while one of these lives, CLOCK_MONOTONIC is it in the whole
// process. Each look takes a microsecond, so that who looks until a moment gets there. Thread rule: any; one at a time.
#pragma once

#include <cstdint>

namespace xschedd::shim {

class TestClock {
 public:
  TestClock();
  ~TestClock();
  TestClock(const TestClock&) = delete;
  TestClock& operator=(const TestClock&) = delete;

  static void Pass(std::uint64_t ns);
};

}  // namespace xschedd::shim
