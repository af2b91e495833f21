// Threads that wait for room in a device's window. One of them polls the markers for all; the others sleep until it has
// found something. Thread rule: guarded by its device's lock, which a sleep releases.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace xschedd::shim {

class RoomWaiters {
 public:
  // How often there has been more room, modulo 2^32: a thread that saw another number has to try again.
  std::uint32_t Rooms() const { return rooms_; }
  // There is more room.
  void MoreRoom() {
    ++rooms_;
    Wake();
  }
  // Sleeping threads try again without more room.
  void Wake() {
    if (waiting_ > 0) changed_.notify_all();
  }

  // While it lives, the calling thread waits; the first one polls. The lock is held at both ends.
  class Waiting {
   public:
    explicit Waiting(RoomWaiters* waiters) : waiters_(waiters), polls_(!waiters->is_polled_) {
      ++waiters_->waiting_;
      if (polls_) waiters_->is_polled_ = true;
    }
    ~Waiting() {
      if (polls_) waiters_->is_polled_ = false;
      --waiters_->waiting_;
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

    bool Polls() const { return polls_; }
    // Until it is woken, or for so long.
    void UnlockToSleep(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds longest) {
      waiters_->changed_.wait_for(lock, longest);
    }

   private:
    RoomWaiters* const waiters_;
    const bool polls_;
  };

 private:
  std::condition_variable changed_;
  std::uint32_t waiting_ = 0;
  std::uint32_t rooms_ = 0;
  bool is_polled_ = false;
};

}  // namespace xschedd::shim
