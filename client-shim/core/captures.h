// Stream captures in progress in this process, and what the library may do meanwhile. Two things would break a capture:
//
//   - A call that the capture forbids to other threads (in global mode, a query of an event). No capture forbids
//   anything
//     to a thread in relaxed mode, so the library makes its calls in that mode (RelaxedThread).
//   - A marker on a stream that has joined the capture, or on the legacy default stream, which waits for it. Any stream
//     may join unseen, by waiting for an event. Inside the program's own launch the stream is known not to be captured,
//     so markers are recorded there. Recording elsewhere is refused while a capture is open, and a capture does not
//     begin before a recording in progress has ended (Elsewhere).
//
// Thread rule: any thread. Any() and AreCallsForbidden() take no lock.
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
  // Before the real call that begins a capture of `stream`. Waits for recordings in progress elsewhere, which take
  // microseconds. The wait is bounded, because one may be stuck behind a full queue.
  void Begin(void* stream) {
    std::unique_lock lock(mutex_);
    open_.push_back(stream);
    UpdateCount();
    recorded_.wait_for(lock, kLongestWait, [this] { return recording_.load(std::memory_order_seq_cst) == 0; });
  }
  // Also for a stream that is destroyed during its capture, or that was never captured.
  void End(void* stream) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(open_.begin(), open_.end(), stream);
    if (found == open_.end()) return;
    open_.erase(found);
    UpdateCount();
  }
  // relaxed: a thread that captures sees its own; others cannot order themselves against it in any case.
  bool Any() const { return open_count_.load(std::memory_order_relaxed) != 0; }

  // Permission to record on a stream outside of the program's own launch on it.
  class Elsewhere {
   public:
    explicit Elsewhere(Captures* captures) : captures_(captures) {
      // seq_cst, both: either this thread sees the capture, or Begin sees this recording.
      captures_->recording_.fetch_add(1, std::memory_order_seq_cst);
      is_allowed_ = captures_->open_count_.load(std::memory_order_seq_cst) == 0;
    }
    ~Elsewhere() {
      // seq_cst, both: either this thread sees the capture that waits, or Begin sees no recording.
      if (captures_->recording_.fetch_sub(1, std::memory_order_seq_cst) != 1) return;
      if (captures_->open_count_.load(std::memory_order_seq_cst) == 0) return;
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

  // The process exits: the runtime must not be called any more. relaxed: the one thread that is waited for is the
  // agent, and it checks Client::IsExiting as well.
  void ForbidCalls() { are_calls_forbidden_.store(true, std::memory_order_relaxed); }
  bool AreCallsForbidden() const { return are_calls_forbidden_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::chrono::milliseconds kLongestWait{20};

  void UpdateCount() { open_count_.store(static_cast<int>(open_.size()), std::memory_order_seq_cst); }

  std::mutex mutex_;
  std::condition_variable recorded_;
  std::vector<void*> open_;  // the streams that captures began on
  std::atomic<int> open_count_{0};
  std::atomic<bool> are_calls_forbidden_{false};
  alignas(64) std::atomic<int> recording_{0};  // written by threads that synchronise, beside what each launch reads
};

// While it lives, the calling thread may make any call: no capture forbids it, and the call breaks no capture
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
