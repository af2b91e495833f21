// Makes submissions to a stream wait while a more important stream of the same process has work on the same device.
// stream_order.h says who waits for whom, and for how long. They wait before the client counts as busy, so the daemon
// does not see it.
//
// Of the threads that wait for a device, one polls for finished work, and the others sleep until it wakes them.
//
// Thread rule: any thread. While IsOn() is false, nothing else is called on the launch path. No lock is held over a
// call of StreamLoads.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "client-shim/core/stream_order.h"
#include "common/abi.h"

namespace xschedd::shim {

// The work of the streams of one device. Thread rule: any thread.
class StreamLoads {
 public:
  virtual ~StreamLoads() = default;
  // Until when streams above `priority` bind (BindsUntilNs in stream_order.h); 0: none does.
  virtual std::uint64_t BindsUntilNs(const StreamOrder& order, int priority) const = 0;
  // Finds out what has finished. If the caller still waits, it calls again after `nap_ns`.
  virtual void Poll(std::uint64_t nap_ns) = 0;
};

class StreamGate {
 public:
  // Replaces the order; threads that wait check again.
  void Set(StreamOrder order);
  // From now on, nobody waits.
  void Close();

  // There are streams of different priorities. acquire: the order that says so is there.
  bool IsOn() const { return is_on_.load(std::memory_order_acquire); }
  bool MayWait(void* stream) const { return Order()->MayWait(stream); }
  // Waits until a submission to this stream of this device is let through: at most kLongestHoldNs and one nap.
  void Wait(int device, void* stream, StreamLoads* work);
  // relaxed: a statistic.
  std::uint64_t WaitedNs() const { return waited_ns_.load(std::memory_order_relaxed); }

 private:
  struct Device {
    StreamGuard guard;
    bool has_poller = false;
  };
  std::shared_ptr<const StreamOrder> Order() const {
    const std::lock_guard lock(mutex_);
    return order_;
  }
  // Releases the lock to poll and to sleep; returns with it held.
  void UnlockToWait(std::unique_lock<std::mutex>* lock, Device* device, void* stream, StreamLoads* work);

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // the order has changed, or work has finished
  std::shared_ptr<const StreamOrder> order_ = std::make_shared<const StreamOrder>();
  std::array<Device, abi::kMaxDevices> devices_;
  bool is_closed_ = false;
  std::atomic<bool> is_on_{false};
  std::atomic<std::uint64_t> waited_ns_{0};
};

}  // namespace xschedd::shim
