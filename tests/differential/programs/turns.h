// Threads of a program that take turns, so that what they do together has an order.
// Thread rule: any thread.
#pragma once

#include <condition_variable>
#include <mutex>

namespace differential {

// Counts up; a thread waits for the number that is its turn.
class Turns {
 public:
  void WaitFor(unsigned turn) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turn_ >= turn; });
  }
  void Next() {
    const std::lock_guard lock(mutex_);
    ++turn_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned turn_ = 0;
};

}  // namespace differential
