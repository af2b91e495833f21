// DeviceTracker's third part: calls whose success proves that work has finished, and what a query may meet of ours.
#include <algorithm>
#include <chrono>

#include "client-shim/core/device_tracker.h"
#include "common/clock.h"

namespace xschedd::shim {
namespace {

// Events remembered at most; a program that records more without destroying them loses the exactness, not the count.
constexpr std::size_t kMaxEvents = 4096;

// How long an implicit synchronisation waits for markers that are being recorded, which takes microseconds; not for
// ever, because one may stand behind a full queue.
constexpr std::chrono::milliseconds kLongestRecording{20};

}  // namespace

Snapshot DeviceTracker::BeginSync(SyncScope scope, const StreamKey& key) {
  Lock lock(mutex_);
  const std::uint64_t epoch = epoch_;
  if (scope == SyncScope::kDevice) UnlockToMarkEach(lock, IsOpen);
  const auto own = streams_.find(key);
  if (scope == SyncScope::kStream && own != streams_.end() && IsOpen(own->second))
    UnlockToMark(lock, key, 0, In::kElsewhere);
  if (epoch != epoch_) return Snapshot{};
  for (auto& [other, stream] : streams_)
    CloseOpen(stream);
  if (syncing_++ == 0) last_poll_ns_ = MonotonicNs();
  const bool is_query = scope == SyncScope::kQuery;
  if (!is_query) BeginWaitLocked();
  return Snapshot{is_query ? SyncScope::kStream : scope, key, next_batch_ - 1, epoch_, is_query};
}

void DeviceTracker::EndSync(const Snapshot& snapshot, bool ok) {
  Lock lock(mutex_);
  if (snapshot.epoch != epoch_) return;
  if (syncing_ > 0) --syncing_;
  if (!snapshot.is_query && blocked_ > 0) --blocked_;
  if (!ok) return UpdateWaits();
  for (auto& [key, stream] : streams_) {
    const bool is_covered =
        snapshot.scope == SyncScope::kEvent ? key == snapshot.stream : IsWaitedFor(snapshot.stream, key, stream);
    if (snapshot.scope == SyncScope::kDevice || is_covered) {
      Settle(key, stream, snapshot.last_batch);
      if (snapshot.scope != SyncScope::kEvent && stream.own_marker <= snapshot.last_batch) stream.own_marker = 0;
    }
  }
  UnlockToMeasure(lock);
  AfterSettling();
}

void DeviceTracker::BeginImplicitSync() {
  Lock lock(mutex_);
  UnlockToMarkEach(lock, IsOpen);
  ++implicit_syncs_;
  unpinned_.wait_for(lock, kLongestRecording, [this] { return !IsAnyPinned(); });
}

void DeviceTracker::EndImplicitSync(bool ok) {
  Lock lock(mutex_);
  if (!ok) {
    --implicit_syncs_;
    return;  // the runtime keeps an error for the program, and a call of ours would overwrite it
  }
  UnlockForEach(
      [this](const StreamKey& key, const StreamState& stream) {
        return MayMarkElsewhere(key) && (!stream.work.IsIdle() || stream.own_marker != 0);
      },
      [&](const StreamKey& key) { UnlockToAsk(lock, key); });
  --implicit_syncs_;
  UnlockToMeasure(lock);
  AfterSettling();
}

// Settles what the stream has, if it has finished.
void DeviceTracker::UnlockToAsk(Lock& lock, const StreamKey& key) {
  const Captures::Elsewhere elsewhere(captures_);
  if (captures_->Forbid() || !elsewhere.IsAllowed()) return;
  StreamState& stream = Find(key);
  const Pin pin(this, &stream);
  const std::uint64_t epoch = epoch_;
  CloseOpen(stream);
  const std::uint64_t last = next_batch_ - 1;
  lock.unlock();
  MarkerState state = MarkerState::kPending;
  {
    const RelaxedThread relaxed(*vendor_);
    state = vendor_->query_stream(device_, key.handle);
  }
  lock.lock();
  if (state != MarkerState::kDone || epoch != epoch_) return;
  Settle(key, stream, last);
  if (stream.own_marker <= last) stream.own_marker = 0;
}

bool DeviceTracker::IsFreshlyMarked(const StreamKey& key, std::uint64_t now_ns) const {
  const Lock lock(mutex_);
  const auto found = streams_.find(key);
  if (found == streams_.end()) return false;
  const StreamState& stream = found->second;
  if (stream.pins > 0) return true;  // one is being recorded
  return stream.admitted == 0 && stream.work.IsMarked() && now_ns < stream.recorded_ns + kFreshNs;
}

bool DeviceTracker::IsBehindOwnMarker(const StreamKey& key) const {
  const Lock lock(mutex_);
  bool is_behind = false;
  for (const auto& [other, stream] : streams_) {
    if (!IsWaitedFor(key, other, stream)) continue;
    if (stream.admitted > 0 || stream.in_flight.launches > 0) return false;
    is_behind = is_behind || stream.own_marker != 0;
  }
  return is_behind;
}

bool DeviceTracker::HasOwnMarkers(std::uint64_t now_ns) const {
  const Lock lock(mutex_);
  if (entered_ > 0 || launched_ > 0) return true;
  return std::any_of(streams_.begin(), streams_.end(), [now_ns](const auto& entry) {
    const StreamState& stream = entry.second;
    const bool is_new = now_ns < stream.recorded_ns + kMarkerIsOldNs || stream.own_marker == kRecording;
    return stream.own_marker != 0 && is_new;
  });
}

void DeviceTracker::LeaveOwnMarker(const StreamKey& key) {
  const Lock lock(mutex_);
  for (auto& [other, stream] : streams_) {
    if (IsWaitedFor(key, other, stream)) stream.own_marker = 0;
  }
}

void DeviceTracker::EventRecorded(void* event, const StreamKey& key) {
  const Lock lock(mutex_);
  const auto found = streams_.find(key);
  if (found == streams_.end() || found->second.work.IsIdle()) {
    events_.erase(event);
    return;
  }
  if (events_.size() >= kMaxEvents) events_.clear();
  events_[event] = Snapshot{SyncScope::kEvent, key, CloseOpen(found->second), epoch_};
}

void DeviceTracker::EventDestroyed(void* event) {
  const Lock lock(mutex_);
  events_.erase(event);
}

Snapshot DeviceTracker::BeginEventSync(void* event, bool is_query) {
  const Lock lock(mutex_);
  const auto found = events_.find(event);
  if (found == events_.end()) return Snapshot{};
  ++syncing_;
  if (!is_query) BeginWaitLocked();
  Snapshot snapshot = found->second;
  snapshot.is_query = is_query;
  return snapshot;
}

void DeviceTracker::BeginWait() {
  const Lock lock(mutex_);
  BeginWaitLocked();
}

void DeviceTracker::NoteHostAhead() {
  const Lock lock(mutex_);
  is_host_ahead_ = true;
  UpdateWaits();
}

void DeviceTracker::EndWait() {
  const Lock lock(mutex_);
  if (blocked_ > 0) --blocked_;
  UpdateWaits();
}

}  // namespace xschedd::shim
