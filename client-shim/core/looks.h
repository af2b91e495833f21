// When markers are looked at again: by the agent, which has to notice that a client has become idle, and by a thread
// that waits for the window. Pure arithmetic. A wake-up costs some microseconds of a processor, and comes late by more
// than a marker takes: so nobody sleeps for less, and nobody wakes only to find that it is not time yet.
// Thread rule: Watchfulness, under its device's lock; functions, any thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace xschedd::shim {

// The shortest time between two looks of the agent; with two of them a late "idle" stays under 200 µs.
inline constexpr std::uint64_t kWatchNs = 60'000;
// The longest: the GPU time in the ledger is to be at most some 3 ms behind.
inline constexpr std::uint64_t kLazyNs = 2'000'000;

// How late the end of work may be noticed that the program does not notice itself.
//
//   - Who was busy for long: by a small part of that time. Nobody who has waited for it for so long can tell.
//   - Whose own calls have told each end so far (a synchronisation, a query): the agent only stands by. The first end
//     that no call tells is known late; from then on it looks again.
class Watchfulness {
 public:
  bool IsUnderWay() const { return is_under_way_; }
  // Work was launched where there was none.
  void Begun(std::uint64_t now_ns) {
    is_under_way_ = true;
    // A pause shorter than what it takes to notice one, and to let somebody else on, was none. One that somebody could
    // have used makes the next be noticed as much sooner.
    const std::uint64_t pause_ns = now_ns - ended_ns_;
    if (pause_ns <= kPauseNs) return;
    const std::uint64_t busy_ns = std::min(ended_ns_ - begun_ns_, kPart * kLatestNs);
    begun_ns_ = now_ns - (busy_ns - std::min(busy_ns, kPart * std::min(pause_ns, kLatestNs)));
  }
  // There is none left.
  void Ended(std::uint64_t now_ns) {
    is_under_way_ = false;
    ended_ns_ = now_ns;
    told_ = std::min(told_ + 1, kTold);
  }
  // It was the agent that found the end.
  void Found() { told_ = 0; }
  std::uint64_t LateNs(std::uint64_t now_ns) const {
    if (told_ == kTold) return kLazyNs;
    return std::clamp((now_ns - begun_ns_) / kPart, kWatchNs, kLatestNs);
  }

 private:
  static constexpr std::uint32_t kTold = 8;
  static constexpr std::uint64_t kPauseNs = 500'000;
  static constexpr std::uint64_t kPart = 32;
  static constexpr std::uint64_t kLatestNs = 1'200'000;

  std::uint64_t begun_ns_ = 0;
  std::uint64_t ended_ns_ = 0;
  std::uint32_t told_ = 0;  // ends in a row
  bool is_under_way_ = false;
};

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
