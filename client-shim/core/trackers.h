// The trackers of a client: one for each device that it has submitted to while tracked, made when first needed and
// never destroyed. Thread rule: any thread; Begin, one thread at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "client-shim/core/captures.h"
#include "client-shim/core/control_messages.h"
#include "client-shim/core/deadlines.h"
#include "client-shim/core/device_tracker.h"
#include "client-shim/core/session.h"
#include "client-shim/core/stream_table.h"

namespace xschedd::shim {

class Trackers {
 public:
  // All outlive this object.
  Trackers(const Vendor* vendor, Captures* captures, const Deadlines* deadlines, const StreamTable* streams)
      : vendor_(vendor), captures_(captures), deadlines_(deadlines), streams_(streams) {}

  // Null: nothing was submitted to that device.
  DeviceTracker* Existing(int device) const {
    // acquire: the tracker is complete.
    return trackers_[static_cast<std::size_t>(device)].load(std::memory_order_acquire);
  }
  DeviceTracker* Of(int device) {
    DeviceTracker* const tracker = Existing(device);
    return tracker != nullptr ? tracker : Make(device);
  }
  // Calls visit(slot, tracker) for each tracker.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (std::uint32_t slot = 0; slot < abi::kMaxDevices; ++slot) {
      if (DeviceTracker* const tracker = Existing(static_cast<int>(slot))) visit(slot, *tracker);
    }
  }

  // All trackers, and those made later, count from zero for this session; null: for none.
  void Begin(Session* session);
  // A stream was added to the table of streams.
  void NoteStream(int device, void* stream, unsigned flags);

  bool HasOwnMarkers(std::uint64_t now_ns) const;
  // When to call again: the earliest that a tracker returns (DeviceTracker::Tick).
  std::uint64_t Tick(std::uint64_t now_ns, const Session* session) const;
  void TakeActivity(ActivityMessage* message) const;

 private:
  DeviceTracker* Make(int device);

  const Vendor* const vendor_;
  Captures* const captures_;
  const Deadlines* const deadlines_;
  const StreamTable* const streams_;
  std::array<std::atomic<DeviceTracker*>, abi::kMaxDevices> trackers_{};
  std::mutex mutex_;            // orders Make, Begin and NoteStream
  Session* session_ = nullptr;  // guarded by mutex_
};

// The id by which the daemon knows a stream.
std::uint64_t QueueId(const StreamKey& key);

}  // namespace xschedd::shim
