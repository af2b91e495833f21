// The trackers of a client, one for each device that it has submitted to while it was tracked. One is made when it is
// first needed, and never destroyed. Thread rule: any thread; a change of session, one at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "client-shim/core/captures.h"
#include "client-shim/core/control_stream.h"
#include "client-shim/core/deadlines.h"
#include "client-shim/core/device_tracker.h"
#include "client-shim/core/session.h"
#include "client-shim/core/stream_table.h"

namespace xschedd::shim {

class Trackers {
 public:
  // All outlive it.
  Trackers(const Vendor* vendor, Captures* captures, const Deadlines* deadlines, const StreamTable* streams)
      : vendor_(vendor), captures_(captures), deadlines_(deadlines), streams_(streams) {}

  // Null: nothing was submitted to that device.
  DeviceTracker* Existing(int device) const {
    return trackers_[static_cast<std::size_t>(device)].load(std::memory_order_acquire);
  }
  DeviceTracker* Of(int device) {
    DeviceTracker* const tracker = Existing(device);
    return tracker != nullptr ? tracker : Make(device);
  }
  // Calls visit(slot, tracker) for each there is.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (std::uint32_t slot = 0; slot < abi::kMaxDevices; ++slot) {
      if (DeviceTracker* const tracker = trackers_[slot].load(std::memory_order_acquire)) visit(slot, *tracker);
    }
  }

  // They count from nothing for this session; null: for none. So will those that are made from now on.
  void Begin(Session* session);
  // A stream that is in the table of streams now.
  void NoteStream(int device, void* stream, unsigned flags);

  bool HasOwnMarkers(std::uint64_t now_ns) const;
  // The first time that one of them has to be looked at again (DeviceTracker::Tick).
  std::uint64_t Tick(std::uint64_t now_ns, const Session* session) const;
  void TakeActivity(ActivityMessage* message) const;

 private:
  DeviceTracker* Make(int device);

  const Vendor* const vendor_;
  Captures* const captures_;
  const Deadlines* const deadlines_;
  const StreamTable* const streams_;
  std::array<std::atomic<DeviceTracker*>, abi::kMaxDevices> trackers_{};
  std::mutex mutex_;            // orders making one against a change of session, and against a new stream
  Session* session_ = nullptr;  // guarded by mutex_
};

// By which the daemon knows a stream.
std::uint64_t QueueId(const StreamKey& key);

}  // namespace xschedd::shim
