// When markers are polled again: by the agent, which must notice that the client has become idle (soon, if another
// client waits for that: abi::kAwaited), and by a thread that waits for the window. Pure arithmetic. A wake-up costs
// some microseconds of processor time, and is late by more than a query of a marker takes. So no sleep is shorter than
// that, and no thread wakes before a marker can be due. Thread rule: any thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace xschedd::shim {

// The shortest time between two looks of the agent; with two of them a late "idle" stays under 200 µs.
inline constexpr std::uint64_t kWatchNs = 60'000;
// The same where nobody waits; and the longest: the GPU time in the ledger is to be at most some 3 ms behind.
inline constexpr std::uint64_t kLazyNs = 1'500'000;

// A thread that waits for the window, by when the oldest marker is due.
//
//     now                         due
//      ├── sleep ─────────┬─ spin ─┼─ spin ─┬── sleep, for a part of what it is late ──►
//                       kEarly            kSpinNs
inline constexpr std::uint64_t kEarlyNs = 20'000;  // a sleep ends late by about that
inline constexpr std::uint64_t kSpinNs = 20'000;
inline constexpr std::uint64_t kShortestNapNs = 50'000;
inline constexpr std::uint64_t kLongestNapNs = 2'000'000;
inline constexpr std::uint64_t kLongestLateNapNs = 200'000;

// 0: spin.
inline std::uint64_t NapNs(std::uint64_t now_ns, std::uint64_t due_ns) {
  if (now_ns < due_ns) {
    const std::uint64_t rest = due_ns - now_ns;
    return rest < kShortestNapNs + kEarlyNs ? 0 : std::min(rest - kEarlyNs, kLongestNapNs);
  }
  if (now_ns - due_ns < kSpinNs) return 0;
  return std::clamp((now_ns - due_ns) / 8, kShortestNapNs, kLongestLateNapNs);
}

}  // namespace xschedd::shim
