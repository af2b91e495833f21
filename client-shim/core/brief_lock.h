// A lock for some ten instructions that make no call and never wait. A thread of the program only tries it, because it
// can do something else, and lets it go by a plain store: a mutex costs more than what is done under it. Who has to
// have it waits a moment. Thread rule: any thread; not in a signal's handler.
#pragma once

#include <time.h>

#include <atomic>

namespace xschedd::shim {

class BriefLock {
 public:
  // acquire, and release in Unlock: what one holder wrote the next one sees.
  bool Try() { return !is_held_.exchange(true, std::memory_order_acquire); }
  void Lock() {
    for (int tries = 0; !Try(); ++tries) {
      if (tries < kTries) {
        __builtin_ia32_pause();
        continue;
      }
      // The holder may need this very core: a spinning thread of higher priority would keep it from it.
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

// Holds it while it lives, if it was let have it.
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
