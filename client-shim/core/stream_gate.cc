#include "client-shim/core/stream_gate.h"

#include <algorithm>
#include <chrono>

#include "client-shim/core/polling.h"
#include "common/clock.h"

namespace xschedd::shim {
namespace {

// How often the polling thread polls: rarely enough that its wake-ups and queries cost next to nothing.
constexpr std::uint64_t kPollIntervalNs = 100'000;

}  // namespace

void StreamGate::Set(StreamOrder order) {
  auto next = std::make_shared<const StreamOrder>(std::move(order));
  const std::lock_guard lock(mutex_);
  if (is_closed_) return;
  order_ = std::move(next);
  // release: see IsOn.
  is_on_.store(order_->IsMixed(), std::memory_order_release);
  changed_.notify_all();
}

void StreamGate::Close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  is_on_.store(false, std::memory_order_release);  // release: as in Set
  changed_.notify_all();
}

void StreamGate::Wait(int device, void* stream, StreamLoads* work) {
  const std::shared_ptr<const StreamOrder> order = Order();
  // The common case: no stream above has work.
  if (!order->MayWait(stream) || work->BindsUntilNs(*order, order->Of(stream)) <= MonotonicNs()) return;
  std::unique_lock lock(mutex_);
  UnlockToWait(&lock, &devices_[static_cast<std::size_t>(device)], stream, work);
}

void StreamGate::UnlockToWait(std::unique_lock<std::mutex>* lock, Device* device, void* stream, StreamLoads* work) {
  const std::uint64_t began = MonotonicNs();
  std::uint64_t now = began;
  bool is_poller = false;
  while (!is_closed_) {
    const std::shared_ptr<const StreamOrder> order = order_;
    const int priority = order->Of(stream);
    if (!order->MayWait(stream) || device->guard.LetsThrough(priority, began, now)) break;
    is_poller = is_poller || !device->has_poller;
    device->has_poller = true;
    lock->unlock();
    if (is_poller) work->Poll(kPollIntervalNs);
    const std::uint64_t until = work->BindsUntilNs(*order, priority);
    lock->lock();
    now = MonotonicNs();
    if (until <= now) break;
    if (is_closed_ || order != order_) continue;
    const std::uint64_t nap = std::min({is_poller ? kPollIntervalNs : kLongestNapNs, until - now,
                                        began + kLongestHoldNs > now ? began + kLongestHoldNs - now : 1});
    changed_.wait_for(*lock, std::chrono::nanoseconds(nap));
    now = MonotonicNs();
  }
  if (is_poller) device->has_poller = false;
  // Others may be let through, too; of those that are not, one becomes the polling thread.
  changed_.notify_all();
  // relaxed: a statistic.
  waited_ns_.fetch_add(now - began, std::memory_order_relaxed);
}

}  // namespace xschedd::shim
