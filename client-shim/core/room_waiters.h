// Threads that wait for room in a device's window. One of them polls the markers for all; the others sleep until it has
// found something. Thread rule: guarded by its device's lock; UnlockToSleep releases it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace xschedd::shim {

class RoomWaiters {
 public:
  // Changes whenever room becomes free: a thread that saw another value has to try again.
  std::uint32_t Generation() const { return generation_; }
  // Room has become free.
  void NotifyRoom() {
    ++generation_;
    Wake();
  }
  // Sleeping threads try again, although no room has become free.
  void Wake() {
    if (waiting_ > 0) changed_.notify_all();
  }

  // While it lives, the calling thread waits. The first one to wait polls. Made and destroyed under the lock.
  class Waiting {
   public:
    explicit Waiting(RoomWaiters* waiters) : waiters_(waiters), is_poller_(!waiters->is_polled_) {
      ++waiters_->waiting_;
      if (is_poller_) waiters_->is_polled_ = true;
    }
    ~Waiting() {
      if (is_poller_) waiters_->is_polled_ = false;
      --waiters_->waiting_;
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

    bool IsPoller() const { return is_poller_; }
    // Sleeps until it is woken, at most for `longest`.
    void UnlockToSleep(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds longest) {
      waiters_->changed_.wait_for(lock, longest);
    }

   private:
    RoomWaiters* const waiters_;
    const bool is_poller_;
  };

 private:
  std::condition_variable changed_;
  std::uint32_t waiting_ = 0;
  std::uint32_t generation_ = 0;
  bool is_polled_ = false;
};

}  // namespace xschedd::shim
