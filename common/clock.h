// The project's clock: CLOCK_MONOTONIC in nanoseconds, the same in all processes of the host (apart from time
// namespaces). The wall clock is only for what people or other machines read.
// Thread rule: any thread.
#pragma once

#include <time.h>

#include <cstdint>

namespace xschedd {

// In line, because each tracked launch reads it.
[[gnu::always_inline]] inline std::uint64_t MonotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000ull + static_cast<std::uint64_t>(now.tv_nsec);
}

inline std::uint64_t UnixMs() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

}  // namespace xschedd
