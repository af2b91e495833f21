// The streams that the program has made and not destroyed: which device each is on.
// Thread rule: any thread. KnownDeviceOf takes no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client-shim/core/fibonacci_hash.h"

namespace xschedd::shim {

struct StreamInfo {
  int device = -1;
  int priority = 0;
  unsigned flags = 0;
  bool was_seen_made = false;  // false: first seen at a launch
  std::uint64_t number = 0;    // given by the table: differs for each stream, also at a handle that was used before
};

class StreamTable {
 public:
  void Add(void* stream, const StreamInfo& info) {
    const std::unique_lock lock(mutex_);
    StreamInfo& added = streams_[stream] = info;
    added.number = ++last_number_;
    known_[PlaceOf(stream)].store(0, std::memory_order_relaxed);  // relaxed: as in Remove
  }
  // The device of a stream that is not null, if a recent DeviceOf has cached it; else -1.
  int KnownDeviceOf(void* stream) const {
    // relaxed: handle and device are one value.
    const std::uint64_t known = known_[PlaceOf(stream)].load(std::memory_order_relaxed);
    return (known & kHandle) == reinterpret_cast<std::uintptr_t>(stream) ? static_cast<int>(known >> kHandleBits) - 1
                                                                         : -1;
  }
  // Without a value: the stream is unknown.
  std::optional<int> DeviceOf(void* stream) {
    Known& known = known_[PlaceOf(stream)];
    const std::shared_lock lock(mutex_);
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return std::nullopt;
    const int device = found->second.device;
    // Under the lock, so that a stream that is being removed is not cached. relaxed: as above.
    if ((reinterpret_cast<std::uintptr_t>(stream) & ~kHandle) == 0 && device >= 0 && device < kMaxDevices) {
      known.store(static_cast<std::uint64_t>(device + 1) << kHandleBits | reinterpret_cast<std::uintptr_t>(stream),
                  std::memory_order_relaxed);
    }
    return device;
  }
  // Without a value: the stream is unknown.
  std::optional<StreamInfo> Find(void* stream) const {
    const std::shared_lock lock(mutex_);
    const auto found = streams_.find(stream);
    return found == streams_.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<StreamInfo> Remove(void* stream) {
    const std::unique_lock lock(mutex_);
    known_[PlaceOf(stream)].store(0, std::memory_order_relaxed);  // relaxed: nobody uses a stream while it is destroyed
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return std::nullopt;
    const StreamInfo info = found->second;
    streams_.erase(found);
    return info;
  }
  std::vector<void*> RemoveDevice(int device) {
    const std::unique_lock lock(mutex_);
    std::vector<void*> removed;
    for (Known& known : known_)
      known.store(0, std::memory_order_relaxed);  // relaxed: as in Remove
    for (auto entry = streams_.begin(); entry != streams_.end();) {
      if (entry->second.device == device) {
        removed.push_back(entry->first);
        entry = streams_.erase(entry);
      } else {
        ++entry;
      }
    }
    return removed;
  }
  std::vector<std::pair<void*, StreamInfo>> All() const {
    const std::shared_lock lock(mutex_);
    return {streams_.begin(), streams_.end()};
  }

 private:
  // A cache entry: the handle in the lower bits, the device plus one above them; 0: empty.
  using Known = std::atomic<std::uint64_t>;
  static constexpr unsigned kHandleBits = 48;
  static constexpr std::uint64_t kHandle = (std::uint64_t{1} << kHandleBits) - 1;
  static constexpr int kMaxDevices = 1 << 15;
  static constexpr unsigned kKnownBits = 6;

  static std::size_t PlaceOf(void* stream) {
    return FibonacciHash<kKnownBits>(reinterpret_cast<std::uintptr_t>(stream));
  }

  std::array<Known, std::size_t{1} << kKnownBits> known_{};
  mutable std::shared_mutex mutex_;
  std::unordered_map<void*, StreamInfo> streams_;
  std::uint64_t last_number_ = 0;
};

}  // namespace xschedd::shim
