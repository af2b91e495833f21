// Finds out whether the daemon is in another time namespace. Processes of one time namespace share CLOCK_MONOTONIC.
// Between two namespaces, the ends of leases and deadlines must be translated: otherwise a gate would never bind, or
// would still bind when the daemon no longer renews its lease. Thread rule: pure function.
#pragma once

#include <cstdint>

namespace xschedd::shim {

// How many nanoseconds the daemon's CLOCK_MONOTONIC is ahead of ours; 0: it is the same clock. `daemon_ns`: the
// daemon's time in its answer, 0 if it is too old to send it; `asked_ns` and `answered_ns`: our time before and after.
// The same clock always shows a time between these two. For another clock the error is at most half of the time in
// between.
inline std::int64_t ClockOffset(std::uint64_t daemon_ns, std::uint64_t asked_ns, std::uint64_t answered_ns) {
  if (daemon_ns == 0 || (asked_ns <= daemon_ns && daemon_ns <= answered_ns)) return 0;
  return static_cast<std::int64_t>(daemon_ns - (asked_ns + (answered_ns - asked_ns) / 2));
}

}  // namespace xschedd::shim
