#include "tests/unit/shim/test_clock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {
constexpr std::uint64_t kStartNs = 1'000'000'000'000, kLookNs = 1'000, kNsPerS = 1'000'000'000;
std::atomic<std::uint64_t> g_now_ns{0};  // 0: the machine's
}  // namespace

// Before libc's, which the program's own hides.
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  if (clock != CLOCK_MONOTONIC || g_now_ns == 0) return static_cast<int>(syscall(SYS_clock_gettime, clock, now));
  const std::uint64_t ns = g_now_ns += kLookNs;
  *now = {static_cast<time_t>(ns / kNsPerS), static_cast<long>(ns % kNsPerS)};
  return 0;
}

namespace xschedd::shim {

TestClock::TestClock() {
  g_now_ns = kStartNs;
}

TestClock::~TestClock() {
  g_now_ns = 0;
}

void TestClock::Pass(std::uint64_t ns) {
  g_now_ns += ns;
}

}  // namespace xschedd::shim
