// How often markers are polled: by the agent, which has to notice that the client has become idle (soon, if another
// client waits for that: abi::kAwaited), and by a thread that waits for the window. Pure arithmetic. A wake-up costs
// some microseconds of processor time, and its delay is longer than a query of a marker. So there are no very short
// sleeps, and no thread wakes before a marker can be due. Thread rule: any thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace xschedd::shim {

// The agent's shortest polling interval. Two of them keep the delay of "idle" under 200 µs. Each poll takes locks that
// launches take, too, so where the program's own calls show its ends, the agent polls as if nobody waited.
inline constexpr std::uint64_t kWatchNs = 60'000;
// An end that only the agent has found is a reason to expect another one if this much of the pause was left: a shorter
// one opens nobody's gate, because the daemon's linger is longer.
inline constexpr std::uint64_t kQuietLeftNs = 200'000;
// How long after its begin the end of work is expected to be near, while the program launches.
inline constexpr std::uint64_t kEndsSoonNs = 1'000'000'000;
// Its interval if nobody waits, and its longest: the GPU time in the ledger must not be more than some 3 ms behind.
inline constexpr std::uint64_t kLazyNs = 1'500'000;

// What a thread that waits for the window does, by when the oldest marker is due:
//
//     now                         due
//      ├── sleep ─────────┬─ spin ─┼─ spin ─┬── sleep, for a fraction of the delay so far ──►
//                      kEarlyNs          kSpinNs
inline constexpr std::uint64_t kEarlyNs = 20'000;  // about the delay of a wake-up
inline constexpr std::uint64_t kSpinNs = 20'000;
inline constexpr std::uint64_t kShortestNapNs = 50'000;
inline constexpr std::uint64_t kLongestNapNs = 2'000'000;
inline constexpr std::uint64_t kLongestLateNapNs = 200'000;

// How long to sleep; 0: spin.
inline std::uint64_t NapNs(std::uint64_t now_ns, std::uint64_t due_ns) {
  if (now_ns < due_ns) {
    const std::uint64_t rest = due_ns - now_ns;
    return rest < kShortestNapNs + kEarlyNs ? 0 : std::min(rest - kEarlyNs, kLongestNapNs);
  }
  if (now_ns - due_ns < kSpinNs) return 0;
  return std::clamp((now_ns - due_ns) / 8, kShortestNapNs, kLongestLateNapNs);
}

}  // namespace xschedd::shim
