// A lock around some ten instructions that make no call and never wait. A thread on the launch path only tries it,
// because it has another way, and releases it by a plain store: a mutex would cost more than the work under it. Other
// threads wait for it, briefly. Thread rule: any thread; not in a signal handler.
#pragma once

#include <time.h>

#include <atomic>

namespace xschedd::shim {

class BriefLock {
 public:
  // acquire, and release in Unlock: each holder sees what the one before it wrote.
  bool Try() { return !is_held_.exchange(true, std::memory_order_acquire); }
  void Lock() {
    for (int tries = 0; !Try(); ++tries) {
      if (tries < kTries) {
        __builtin_ia32_pause();
        continue;
      }
      // The holder may need this very core, and a spinning thread of higher priority would not let it run.
      const timespec nap{0, kNapNs};
      ::nanosleep(&nap, nullptr);
    }
  }
  void Unlock() { is_held_.store(false, std::memory_order_release); }

 private:
  static constexpr int kTries = 1000;
  static constexpr long kNapNs = 20'000;

  std::atomic<bool> is_held_{false};
};

// Holds the lock while it lives. After kTry it may not have it: IsHeld.
class BriefHold {
 public:
  enum class How { kTry, kWait };
  BriefHold(BriefLock* lock, How how) : lock_(lock) {
    if (how == How::kTry) {
      is_held_ = lock_->Try();
    } else {
      lock_->Lock();
    }
  }
  ~BriefHold() {
    if (is_held_) lock_->Unlock();
  }
  BriefHold(const BriefHold&) = delete;
  BriefHold& operator=(const BriefHold&) = delete;
  bool IsHeld() const { return is_held_; }

 private:
  BriefLock* const lock_;
  bool is_held_ = true;
};

}  // namespace xschedd::shim
