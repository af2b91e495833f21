// Stream captures in progress in this process, and what the library may do meanwhile. Two things would break a capture:
//
//   - A call that a capture forbids to other threads (a query of an event in global mode). No capture forbids anything
//     to a thread in relaxed mode, so the library makes its calls in that mode (RelaxedThread).
//   - A marker on a stream that has joined the capture, or on the legacy default stream, which waits for it. Any stream
//     may join, by a wait for an event that is not reported. A thread inside the program's own launch knows that its
//     stream is not captured, and records there. Recording elsewhere is refused while a capture is open, and a capture
//     does not begin before a record under way has ended (Elsewhere).
//
// Thread rule: any thread. Any() and Forbid() take no lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "client-shim/core/interface.h"

namespace xschedd::shim {

class Captures {
 public:
  // Before the real call that begins a capture of `stream`. Waits for records that are under way elsewhere, which take
  // microseconds; not for ever, because one may stand behind a full queue.
  void Begin(void* stream) {
    std::unique_lock lock(mutex_);
    open_.push_back(stream);
    Count();
    recorded_.wait_for(lock, kLongestWait, [this] { return recording_.load(std::memory_order_seq_cst) == 0; });
  }
  // Also for a stream that is destroyed while it is captured, and for one that never was.
  void End(void* stream) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(open_.begin(), open_.end(), stream);
    if (found == open_.end()) return;
    open_.erase(found);
    Count();
  }
  // relaxed: a thread that captures sees its own; others cannot order themselves against it in any case.
  bool Any() const { return any_.load(std::memory_order_relaxed) != 0; }

  // Permission to record on a stream that the calling thread is not launching on at the moment.
  class Elsewhere {
   public:
    explicit Elsewhere(Captures* captures) : captures_(captures) {
      // seq_cst, twice: either we see the capture, or it sees us.
      captures_->recording_.fetch_add(1, std::memory_order_seq_cst);
      is_allowed_ = captures_->any_.load(std::memory_order_seq_cst) == 0;
    }
    ~Elsewhere() {
      if (captures_->recording_.fetch_sub(1, std::memory_order_seq_cst) != 1) return;
      if (captures_->any_.load(std::memory_order_seq_cst) == 0) return;
      const std::lock_guard lock(captures_->mutex_);
      captures_->recorded_.notify_all();
    }
    Elsewhere(const Elsewhere&) = delete;
    Elsewhere& operator=(const Elsewhere&) = delete;
    bool IsAllowed() const { return is_allowed_; }

   private:
    Captures* const captures_;
    bool is_allowed_;
  };

  // The process exits: the runtime is not to be called any more. seq_cst: see Agent::Watch.
  void ForbidForGood() { is_forbidden_.store(true, std::memory_order_seq_cst); }
  bool Forbid() const { return is_forbidden_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::chrono::milliseconds kLongestWait{20};

  void Count() { any_.store(static_cast<int>(open_.size()), std::memory_order_seq_cst); }

  std::mutex mutex_;
  std::condition_variable recorded_;
  std::vector<void*> open_;  // the streams that captures began on
  std::atomic<int> any_{0};
  std::atomic<bool> is_forbidden_{false};
  alignas(64) std::atomic<int> recording_{0};  // written by threads that synchronise, beside what each launch reads
};

// While it lives, no capture forbids the calling thread anything, nor is one broken by what it calls
// (cuThreadExchangeStreamCaptureMode).
class RelaxedThread {
 public:
  explicit RelaxedThread(const Vendor& vendor)
      : vendor_(vendor), before_(vendor.exchange_capture_mode(kCaptureModeRelaxed)) {}
  ~RelaxedThread() {
    if (before_ >= 0 && before_ != kCaptureModeRelaxed) (void)vendor_.exchange_capture_mode(before_);
  }
  RelaxedThread(const RelaxedThread&) = delete;
  RelaxedThread& operator=(const RelaxedThread&) = delete;

 private:
  const Vendor& vendor_;
  const int before_;
};

}  // namespace xschedd::shim
