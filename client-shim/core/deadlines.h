// The deadlines that a program has asked for: how long after becoming busy a stream should be idle again.
// Thread rule: any thread. While none is set, a check costs one load.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace xschedd::shim {

class Deadlines {
 public:
  static constexpr std::uint64_t kLongestUs = 3'600'000'000;  // as the protocol says
  static constexpr bool IsDeadline(std::uint64_t us) { return us <= kLongestUs; }

  // For every stream without a deadline of its own. 0: removes it.
  void Set(std::uint64_t us) {
    const std::lock_guard lock(mutex_);
    process_us_ = us;
    UpdateAny();
  }
  void SetStream(void* stream, std::uint64_t us) {
    const std::lock_guard lock(mutex_);
    if (us != 0) {
      streams_[stream] = us;
    } else {
      streams_.erase(stream);
    }
    UpdateAny();
  }
  // relaxed: after each change, DeviceTracker::DeadlinesChanged makes launches see it.
  bool Any() const { return any_.load(std::memory_order_relaxed); }
  // In microseconds; 0: none.
  std::uint64_t Of(void* stream) const {
    const std::lock_guard lock(mutex_);
    const std::uint64_t own_us = FindOwn(stream);
    return own_us != 0 ? own_us : process_us_;
  }
  // The stream's own; 0: none.
  std::uint64_t OfStream(void* stream) const {
    const std::lock_guard lock(mutex_);
    return FindOwn(stream);
  }
  std::uint64_t OfProcess() const {
    const std::lock_guard lock(mutex_);
    return process_us_;
  }

 private:
  std::uint64_t FindOwn(void* stream) const {
    const auto found = streams_.find(stream);
    return found != streams_.end() ? found->second : 0;
  }
  void UpdateAny() { any_.store(process_us_ != 0 || !streams_.empty(), std::memory_order_relaxed); }

  mutable std::mutex mutex_;
  std::unordered_map<void*, std::uint64_t> streams_;
  std::uint64_t process_us_ = 0;
  std::atomic<bool> any_{false};
};

}  // namespace xschedd::shim
