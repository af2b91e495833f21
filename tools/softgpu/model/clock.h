// Time of the software GPU: nanoseconds of CLOCK_MONOTONIC, which is also the clock of the HSA time stamps, so that
// stamps of different processes and of the host's own measurements can be compared. Thread rule: any thread; no state.
#pragma once

#include <cstdint>
#include <ctime>

namespace softgpu {

inline uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

inline timespec to_timespec(uint64_t ns) {
  return timespec{static_cast<time_t>(ns / 1'000'000'000u), static_cast<long>(ns % 1'000'000'000u)};
}

// Returns at `deadline_ns` or later; at once when it has passed. An absolute deadline does not drift when it is
// interrupted.
inline void sleep_until(uint64_t deadline_ns) {
  if (now_ns() >= deadline_ns) return;
  const timespec t = to_timespec(deadline_ns);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) != 0) {
  }
}

}  // namespace softgpu
