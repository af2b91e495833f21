// A clock for tests in which time passes only as they say: while one exists, it is CLOCK_MONOTONIC for the whole
// process. Each reading takes a microsecond, so that polling loops end. Thread rule: any; one at a time.
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
