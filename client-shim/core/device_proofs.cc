// DeviceTracker's proofs that work has finished: what they settle, the program's calls that provide them, and markers
// of ours that a query may meet.
#include <algorithm>
#include <chrono>

#include "client-shim/core/device_tracker.h"
#include "common/clock.h"

namespace xschedd::shim {
namespace {

// The most events that are remembered. If a program records more without destroying them, events prove less, and
// markers settle the work.
constexpr std::size_t kMaxEvents = 4096;

// How long an implicit synchronisation waits for markers that are being recorded, which takes microseconds. The wait is
// bounded, because a recording may be stuck behind a full queue.
constexpr std::chrono::milliseconds kLongestRecording{20};

bool IsOpen(const TrackedStream& stream) {
  return stream.work.HasOpen();
}

}  // namespace

// ---- what has finished is settled ----------------------------------------------------------------------------------

void DeviceTracker::Settle(const StreamKey& key, TrackedStream& stream, std::uint64_t last_batch) {
  TakeBack(key);
  if (stream.work.HasSettledBy(last_batch)) {
    stream.progress_ns = MonotonicNs();
    admission_.Waiters().NotifyRoom();
  }
  const auto measured = [&](const SettledWork& done) { measuring_.Push(key, done); };
  const auto unmeasured = [this](const InFlight& work, const LaunchMix& mix, TimedFrom from) {
    times_.AccountUnmeasured(work, mix, from);
  };
  const InFlight settled = stream.work.Settle(last_batch, measured, unmeasured);
  admission_.Remove(&stream, settled);
  reports_.AddSettled(settled.launches);
  stream.activity.completions += settled.launches;
  if (!stream.work.IsIdle() || stream.admitted > 0) return;
  markers_.Give(stream.work.EndTime());  // the gap until the next launch is no GPU time
  stream.busy_since_ns = 0;
}

void DeviceTracker::UnlockToFinishSettling(Lock& lock) {
  measuring_.UnlockToMeasure(lock);
  if (times_.Costs().HasJumped()) TakeBackAll();  // accounts have the old costs
  unpinned_.notify_all();
  PublishLimit();
  AfterSettling();
}

// A cost has changed a lot. What is in flight gets new weights; otherwise a kind that has become long would fill the
// window many times over before its first launch settles.
void DeviceTracker::Reprice() {
  const auto reprice = [this](TrackedStream* stream, InFlight* work, const LaunchMix& mix) {
    std::uint64_t cost_ns = times_.Costs().SettledCostNs(mix);
    // An estimate may only raise the weight.
    if (cost_ns == 0) cost_ns = std::max(work->cost_ns, times_.Costs().EstimatedCostNs(mix));
    if (cost_ns == work->cost_ns) return;
    admission_.Reweigh(stream, work->cost_ns, cost_ns);
    work->cost_ns = cost_ns;
  };
  for (auto& entry : streams_)
    entry.second.work.ForEach([&](InFlight* work, const LaunchMix& mix) { reprice(&entry.second, work, mix); });
}

// ---- calls of the program ------------------------------------------------------------------------------------------

Snapshot DeviceTracker::BeginSync(SyncScope scope, const StreamKey& key) {
  Lock lock(mutex_);
  const std::uint64_t epoch = epoch_;
  if (scope == SyncScope::kDevice) FoldAll();
  Fold(key);
  if (scope == SyncScope::kDevice) UnlockToMarkEach(lock, IsOpen);
  const TrackedStream* const own = streams_.Known(key);
  if (scope == SyncScope::kStream && own != nullptr && IsOpen(*own)) UnlockToMark(lock, key, 0, In::kElsewhere);
  if (epoch != epoch_) return Snapshot{};
  for (auto& [other, stream] : streams_) {
    if (scope == SyncScope::kDevice || TrackedStreams::IsWaitedFor(key, other, stream)) CloseOpen(stream);
  }
  if (syncing_++ == 0) last_poll_ns_ = MonotonicNs();
  const bool is_query = scope == SyncScope::kQuery;
  if (!is_query) {
    ++blocked_;
    UpdateWaits();
  }
  return Snapshot{is_query ? SyncScope::kStream : scope, is_query, key, next_batch_ - 1, epoch_};
}

void DeviceTracker::EndSync(const Snapshot& snapshot, bool ok) {
  Lock lock(mutex_);
  if (snapshot.epoch != epoch_) return;
  if (syncing_ > 0) --syncing_;
  if (!snapshot.is_query && blocked_ > 0) --blocked_;
  if (!ok) return UpdateWaits();
  NoteShown();
  for (auto& [key, stream] : streams_) {
    const bool is_covered = snapshot.scope == SyncScope::kEvent
                                ? key == snapshot.stream
                                : TrackedStreams::IsWaitedFor(snapshot.stream, key, stream);
    if (snapshot.scope == SyncScope::kDevice || is_covered) {
      Settle(key, stream, snapshot.last_batch);
      if (snapshot.scope != SyncScope::kEvent && stream.own_marker <= snapshot.last_batch) stream.own_marker = 0;
    }
  }
  UnlockToFinishSettling(lock);
}

void DeviceTracker::BeginImplicitSync() {
  Lock lock(mutex_);
  FoldAll();
  UnlockToMarkEach(lock, IsOpen);
  ++implicit_syncs_;
  unpinned_.wait_for(lock, kLongestRecording, [this] { return !streams_.IsAnyPinned(); });
}

void DeviceTracker::EndImplicitSync(bool ok) {
  Lock lock(mutex_);
  if (!ok) {
    --implicit_syncs_;
    return;  // a call of ours would overwrite the error that the runtime keeps for the program
  }
  NoteShown();
  FoldAll();
  UnlockForEach(
      [this](const StreamKey& key, const TrackedStream& stream) {
        return streams_.MayMarkElsewhere(key) && (!stream.work.IsIdle() || stream.own_marker != 0);
      },
      [&](const StreamKey& key) { UnlockToQueryStream(lock, key); });
  --implicit_syncs_;
  UnlockToFinishSettling(lock);
}

// Settles all work of the stream if the runtime says that it has finished.
void DeviceTracker::UnlockToQueryStream(Lock& lock, const StreamKey& key) {
  const Captures::Elsewhere elsewhere(captures_);
  if (captures_->AreCallsForbidden() || !elsewhere.IsAllowed()) return;
  TrackedStream& stream = streams_.Find(key);
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

// ---- markers of ours in a query's way ------------------------------------------------------------------------------

bool DeviceTracker::IsFreshlyMarked(const StreamKey& key, std::uint64_t now_ns) {
  const Lock lock(mutex_);
  Fold(key);
  const TrackedStream* const stream = streams_.Known(key);
  if (stream == nullptr) return false;
  if (stream->pins > 0) return true;  // one is being recorded
  return stream->admitted == 0 && stream->work.IsMarked() && now_ns < stream->recorded_ns + kFreshNs;
}

bool DeviceTracker::IsBehindOwnMarker(const StreamKey& key) {
  const Lock lock(mutex_);
  FoldAll();
  bool is_behind = false;
  for (const auto& [other, stream] : streams_) {
    if (!TrackedStreams::IsWaitedFor(key, other, stream)) continue;
    if (stream.admitted > 0 || stream.in_flight.launches > 0) return false;
    is_behind = is_behind || stream.own_marker != 0;
  }
  return is_behind;
}

bool DeviceTracker::HasOwnMarkers(std::uint64_t now_ns) {
  const Lock lock(mutex_);
  FoldAll();
  if (entered_ > 0 || reports_.Launched() > 0) return true;
  return std::any_of(streams_.begin(), streams_.end(), [now_ns](const auto& entry) {
    const TrackedStream& stream = entry.second;
    const bool is_new = now_ns < stream.recorded_ns + kMarkerIsOldNs || stream.own_marker == TrackedStream::kRecording;
    return stream.own_marker != 0 && is_new;
  });
}

void DeviceTracker::ForgetOwnMarker(const StreamKey& key) {
  const Lock lock(mutex_);
  for (auto& [other, stream] : streams_) {
    if (TrackedStreams::IsWaitedFor(key, other, stream)) stream.own_marker = 0;
  }
}

// ---- events --------------------------------------------------------------------------------------------------------

void DeviceTracker::EventRecorded(void* event, const StreamKey& key) {
  const Lock lock(mutex_);
  Fold(key);
  TrackedStream* const stream = streams_.Known(key);
  if (stream == nullptr || stream->work.IsIdle()) {
    events_.erase(event);
    return;
  }
  if (events_.size() >= kMaxEvents) events_.clear();
  events_[event] = Snapshot{SyncScope::kEvent, false, key, CloseOpen(*stream), epoch_};
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
  if (!is_query) {
    ++blocked_;
    UpdateWaits();
  }
  Snapshot snapshot = found->second;
  snapshot.is_query = is_query;
  return snapshot;
}

}  // namespace xschedd::shim
