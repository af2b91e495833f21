// The two futex operations this library uses, and an event count made of them.
// Thread rule: any thread of this process (futexes are private).
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

#include "tools/softgpu/model/clock.h"

namespace softgpu {

inline constexpr uint64_t kForever = UINT64_MAX;

// Waits until woken, or until CLOCK_MONOTONIC reaches `deadline_ns`, or not at all when `word` is not `expected`.
inline void futex_wait_until(std::atomic<uint32_t>& word, uint32_t expected, uint64_t deadline_ns) {
  const timespec limit = to_timespec(deadline_ns);
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, deadline_ns == kForever ? nullptr : &limit, nullptr,
          FUTEX_BITSET_MATCH_ANY);
}

inline void futex_wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX);
}

// Lets threads sleep until something changed. Waiter: prepare(), check the condition, then wait(ticket) or cancel().
// Notifier: change the condition, then notify(). seq_cst throughout: either the waiter, which counts itself before it
// checks, sees the change, or the notifier, which checks for waiters after the change, sees the waiter.
class EventCount {
 public:
  uint32_t prepare() {
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    return epoch_.load(std::memory_order_seq_cst);
  }
  void cancel() { waiters_.fetch_sub(1, std::memory_order_seq_cst); }
  void wait(uint32_t ticket, uint64_t deadline_ns = kForever) {
    futex_wait_until(epoch_, ticket, deadline_ns);
    cancel();
  }
  // Costs one load if no thread waits.
  void notify() {
    if (waiters_.load(std::memory_order_seq_cst) == 0) return;
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    futex_wake_all(epoch_);
  }

 private:
  std::atomic<uint32_t> epoch_{0};
  std::atomic<uint32_t> waiters_{0};
};

}  // namespace softgpu
