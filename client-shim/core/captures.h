// Stream captures that are in progress in this process, and what they forbid.
// A capture in global or thread-local mode is broken by an event recorded or queried elsewhere in the process, so
// nothing of ours is done meanwhile; one in relaxed mode forbids nothing. (Thread-local mode forbids it to one thread
// only; treating it as global costs a marker at most.) Thread rule: any thread. Any() and Forbid() take no lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace xschedd::shim {

class Captures {
 public:
  static constexpr int kRelaxed = 2;  // hipStreamCaptureModeRelaxed, cudaStreamCaptureModeRelaxed

  void Begin(void* stream, int mode) {
    const std::lock_guard lock(mutex_);
    open_.push_back({stream, mode != kRelaxed});
    Count();
  }
  // Also for a stream that is destroyed while it is captured, and for one that never was.
  void End(void* stream) {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(open_.begin(), open_.end(), [&](const Open& open) { return open.stream == stream; });
    if (found == open_.end()) return;
    open_.erase(found);
    Count();
  }
  // The runtime is not to be called any more, as if a capture went on for ever.
  void ForbidForGood() {
    const std::lock_guard lock(mutex_);
    open_.push_back({this, true});  // no stream has this handle
    Count();
  }
  // relaxed: a thread that captures sees its own; others cannot order themselves against it in any case.
  bool Any() const { return any_.load(std::memory_order_relaxed) != 0; }
  bool Forbid() const { return forbidding_.load(std::memory_order_relaxed) != 0; }

 private:
  struct Open {
    void* stream;
    bool forbids;
  };
  void Count() {
    any_.store(static_cast<int>(open_.size()), std::memory_order_relaxed);
    // seq_cst: see Agent::Watch.
    forbidding_.store(
        static_cast<int>(std::count_if(open_.begin(), open_.end(), [](const Open& open) { return open.forbids; })),
        std::memory_order_seq_cst);
  }

  std::mutex mutex_;
  std::vector<Open> open_;
  std::atomic<int> any_{0};
  std::atomic<int> forbidding_{0};
};

}  // namespace xschedd::shim
