// The program's calls that show what has finished: synchronisations, queries, events.
#include "client-shim/core/tracked_sync.h"

#include <sched.h>

#include <bit>

#include "client-shim/core/carried.h"
#include "client-shim/core/client.h"
#include "common/clock.h"

namespace xschedd::shim {
namespace {

static_assert(abi::kMaxDevices <= 64);

// How long a query is repeated because of a marker of ours. Usually that takes microseconds; on a loaded machine, the
// thread that records or completes the marker may not run for some milliseconds.
constexpr std::uint64_t kLongestRepeatNs = 20'000'000;

}  // namespace

// ---- one call ------------------------------------------------------------------------------------------------------

TrackedSync::TrackedSync(const Trackers& trackers) {
  trackers.ForEach([this](std::uint32_t slot, DeviceTracker& tracker) {
    tracker.BeginImplicitSync();
    implicit_ |= std::uint64_t{1} << slot;
  });
}

void TrackedSync::End(const Trackers& trackers, bool ok) const {
  for (std::uint64_t left = implicit_; left != 0; left &= left - 1)
    trackers.Existing(std::countr_zero(left))->EndImplicitSync(ok);
  if (tracker_ != nullptr) tracker_->EndSync(snapshot_, ok);
}

bool TrackedSync::ShouldAskAgain() const {
  if (tracker_ == nullptr) return false;
  const StreamKey& stream = snapshot_.stream;
  const std::uint64_t now = MonotonicNs();
  const std::uint64_t repeated_ns = now - began_ns_;
  if (!tracker_->IsBehindOwnMarker(stream))
    return repeated_ns <= DeviceTracker::kFreshNs && tracker_->IsFreshlyMarked(stream, now);
  if (repeated_ns <= kLongestRepeatNs) return true;
  tracker_->ForgetOwnMarker(stream);
  return false;
}

// ---- the client's part ---------------------------------------------------------------------------------------------

void Client::SyncBegin(Sync* sync, SyncScope scope, void* object) {
  auto& place = Carried<TrackedSync>::Begin(sync->core);
  if (scope == SyncScope::kImplicit) {
    place.Put(trackers_);
    return;
  }
  if (scope == SyncScope::kEvent || scope == SyncScope::kEventQuery) {
    bool is_found = false;
    trackers_.ForEach([&](std::uint32_t, DeviceTracker& tracker) {
      if (is_found) return;
      const Snapshot snapshot = tracker.BeginEventSync(object, scope == SyncScope::kEventQuery);
      is_found = snapshot.epoch != 0;
      if (is_found) place.Put(&tracker, snapshot, 0);
    });
    return;
  }
  const int device = scope == SyncScope::kDevice ? stub_.vendor->current_device() : DeviceOf(object);
  if (!IsDevice(device)) return;
  DeviceTracker* const tracker = trackers_.Existing(device);
  if (tracker == nullptr) return;
  const StreamKey key = scope == SyncScope::kDevice ? StreamKey{} : KeyOf(object);
  const std::uint64_t now = scope == SyncScope::kQuery ? MonotonicNs() : 0;
  place.Put(tracker, tracker->BeginSync(scope, key), now);
}

void Client::SyncEnd(Sync* sync, bool ok) {
  if (const auto tracked = Carried<TrackedSync>::End(sync->core)) tracked->End(trackers_, ok);
  // relaxed: a late check does no harm.
  if (expects_markers_.load(std::memory_order_relaxed)) CheckForMarkers(MonotonicNs());
}

bool Client::QueryAgain(const Sync& sync) {
  const TrackedSync* const tracked = Carried<TrackedSync>::In(sync.core);
  if (tracked == nullptr || !tracked->ShouldAskAgain()) return false;
  ::sched_yield();
  return true;
}

void Client::EventRecorded(void* event, void* stream) {
  if (session_.load(std::memory_order_acquire) == nullptr && !stream_gate_.IsOn()) return;
  // Recorded into a graph, the event says nothing about work that runs.
  if (captures_.Any() && stub_.vendor->is_capturing(stream)) return;
  const int device = DeviceOf(stream);
  if (!IsDevice(device)) return;
  trackers_.ForEach([&](std::uint32_t slot, DeviceTracker& tracker) {
    if (slot == static_cast<std::uint32_t>(device)) {
      tracker.EventRecorded(event, KeyOf(stream));
    } else {
      tracker.EventDestroyed(event);  // it no longer stands for work of that device
    }
  });
}

void Client::EventDestroyed(void* event) {
  trackers_.ForEach([event](std::uint32_t, DeviceTracker& tracker) { tracker.EventDestroyed(event); });
}

}  // namespace xschedd::shim
