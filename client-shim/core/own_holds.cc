#include "client-shim/core/own_holds.h"

#include <algorithm>
#include <chrono>

#include "common/clock.h"

namespace xschedd::shim {

void OwnHolds::HoldDevice(int device, std::uint64_t until_ns) {
  const std::lock_guard lock(mutex_);
  devices_[device] = until_ns;
  UpdateAny();
}

void OwnHolds::HoldStream(void* stream, std::uint64_t until_ns) {
  const std::lock_guard lock(mutex_);
  streams_[stream] = until_ns;
  UpdateAny();
}

void OwnHolds::ReleaseDevice(int device) {
  const std::lock_guard lock(mutex_);
  if (device == kAllDevices) {
    devices_.clear();
    streams_.clear();
  } else {
    devices_.erase(device);
  }
  UpdateAny();
}

void OwnHolds::ReleaseStream(void* stream) {
  const std::lock_guard lock(mutex_);
  streams_.erase(stream);
  UpdateAny();
}

std::uint64_t OwnHolds::UntilNs(int device, void* stream) const {
  std::uint64_t until = 0;
  const auto include = [&until](const auto& holds, const auto& key) {
    const auto found = holds.find(key);
    if (found != holds.end()) until = std::max(until, found->second);
  };
  include(devices_, kAllDevices);
  include(devices_, device);
  include(streams_, stream);
  return until;
}

bool OwnHolds::Wait(int device, void* stream) {
  std::unique_lock lock(mutex_);
  const std::uint64_t began = MonotonicNs();
  std::uint64_t now = began;
  for (std::uint64_t until = UntilNs(device, stream); now < until; until = UntilNs(device, stream)) {
    changed_.wait_for(lock, std::chrono::nanoseconds(until - now));
    now = MonotonicNs();
  }
  // relaxed: a statistic.
  waited_ns_.fetch_add(now - began, std::memory_order_relaxed);
  const auto is_over = [now](const auto& hold) { return hold.second <= now; };
  if (std::erase_if(devices_, is_over) + std::erase_if(streams_, is_over) == 0) return false;
  return !UpdateAny();
}

}  // namespace xschedd::shim
