// Whether the daemon is in another time namespace. CLOCK_MONOTONIC is one clock for all processes of one time
// namespace. Between two, the ends of leases and deadlines must be translated: otherwise a gate would never bind, or
// would bind even if the daemon does not renew its lease. Thread rule: pure function.
#pragma once

#include <cstdint>

namespace xschedd::shim {

// By how many nanoseconds the daemon's CLOCK_MONOTONIC is ahead of ours; 0: it is the same clock. `daemon_ns`: what it
// said in its answer, 0 if it is too old to say; we asked at `asked_ns` and have had the answer at `answered_ns`. One
// clock is between these two, however long the answer took; another is off by half of that at most.
inline std::int64_t ClockOffset(std::uint64_t daemon_ns, std::uint64_t asked_ns, std::uint64_t answered_ns) {
  if (daemon_ns == 0 || (asked_ns <= daemon_ns && daemon_ns <= answered_ns)) return 0;
  return static_cast<std::int64_t>(daemon_ns - (asked_ns + (answered_ns - asked_ns) / 2));
}

}  // namespace xschedd::shim
