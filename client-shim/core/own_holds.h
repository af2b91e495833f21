// The holds that a program has put on its own work (xschedd_hold): on everything, a device, or a stream, each until a
// given time. Threads that submit to what is held wait here, before the client counts as busy. The daemon is not
// involved.
//
// Every hold ends by itself, so a thread that waits for a hold that it should release itself is late, but not
// deadlocked. Thread rule: any thread. While nothing is held, a check costs one load.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

#include "common/abi.h"

namespace xschedd::shim {

class OwnHolds {
 public:
  static constexpr std::uint64_t kLongestUs = 3'600'000'000;
  static constexpr bool IsLength(std::uint64_t us) { return us >= 1 && us <= kLongestUs; }
  static constexpr int kAllDevices = -1;
  static constexpr bool IsDevice(int device) {
    return device >= kAllDevices && device < static_cast<int>(abi::kMaxDevices);
  }

  void HoldDevice(int device, std::uint64_t until_ns);
  void HoldStream(void* stream, std::uint64_t until_ns);
  // Releasing all devices ends every hold.
  void ReleaseDevice(int device);
  void ReleaseStream(void* stream);

  // Whether there is a hold that was not released. One whose time is over counts until a thread has waited for it.
  // acquire: pairs with the release in UpdateAny.
  bool Any() const { return any_.load(std::memory_order_acquire); }
  // Waits until a submission to this stream of this device is not held. True: the last hold has ended by itself, and
  // Any() is now false.
  bool Wait(int device, void* stream);
  // relaxed: a statistic.
  std::uint64_t WaitedNs() const { return waited_ns_.load(std::memory_order_relaxed); }

 private:
  std::uint64_t UntilNs(int device, void* stream) const;
  bool UpdateAny() {
    const bool any = !devices_.empty() || !streams_.empty();
    any_.store(any, std::memory_order_release);
    changed_.notify_all();
    return any;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, std::uint64_t> devices_;
  std::unordered_map<void*, std::uint64_t> streams_;
  std::atomic<bool> any_{false};
  std::atomic<std::uint64_t> waited_ns_{0};
};

}  // namespace xschedd::shim
