#include "client-shim/core/device_tracker.h"

#include <algorithm>

#include "common/clock.h"

namespace xschedd::shim {

// ---- session -------------------------------------------------------------------------------------------------------

void DeviceTracker::Reset(TrackerSink* sink) {
  const Lock lock(mutex_);
  TakeBackAll();
  for (auto& [key, stream] : streams_) {
    stream.work.ForEachMarker([this](void* marker) { markers_.Give(marker); });
    stream.ForgetWork();
  }
  measuring_.Drop();
  events_.clear();
  times_.Clear();
  ++epoch_;
  entered_ = syncing_ = blocked_ = 0;
  admission_.Clear();
  (void)admission_.SetWindow(Window{});
  reports_.Begin(sink);
  PublishLimit();
  reports_.Publish(times_.TotalNs());
}

// ---- markers -------------------------------------------------------------------------------------------------------

// The newest batch of the stream; 0: none.
std::uint64_t DeviceTracker::CloseOpen(TrackedStream& stream) {
  Fold(stream.activity.stream);
  if (stream.work.HasOpen()) stream.work.Close(next_batch_++);
  return stream.work.NewestBatch();
}

// Records a marker behind everything launched on the stream so far. The batch is closed before the lock is released for
// the call, so that a launch of another thread meanwhile is not covered by a marker that may be in front of it.
bool DeviceTracker::UnlockToMark(Lock& lock, const StreamKey& key, LaunchKey timed, In in, void* stop) {
  if (captures_->AreCallsForbidden()) return false;
  const std::uint64_t epoch = epoch_;
  TrackedStream& stream = streams_.Find(key);
  const Pin pin(this, &stream);
  std::optional<Captures::Elsewhere> elsewhere;
  if (in == In::kElsewhere && !elsewhere.emplace(captures_).IsAllowed()) return false;
  void* marker = markers_.UnlockToTake(lock);
  TakeBack(key);
  // Checked last, under the lock: from here on, NoteStream waits until the marker is recorded.
  const bool may_mark = in == In::kOwnLaunch || MayMarkNow(key);
  if (marker == nullptr || epoch != epoch_ || stream.work.IsIdle() || !may_mark) {
    markers_.Give(marker);
    return false;
  }
  const std::uint64_t id = next_batch_++;
  stream.work.CloseToMark(id, timed);
  stream.own_marker = TrackedStream::kRecording;
  stream.marked_at_ns = stream.submitted_ns;
  const bool is_barrier = in == In::kElsewhere && key == StreamKey{};
  marking_legacy_ += is_barrier ? 1 : 0;
  const bool recorded = markers_.UnlockToRecord(lock, marker, key.handle);
  if (is_barrier && --marking_legacy_ == 0) unpinned_.notify_all();
  if (stream.pins == 1) stream.own_marker = next_batch_++;
  if (recorded) stream.recorded_ns = MonotonicNs();
  if (recorded && epoch == epoch_ && stream.work.SetMarker(id, marker, stop)) return true;
  // Not recorded, or a synchronisation has settled its batch meanwhile.
  markers_.Give(marker);
  return false;
}

// Marks each stream for which is_wanted(stream).
void DeviceTracker::UnlockToMarkEach(Lock& lock, bool (*is_wanted)(const TrackedStream&)) {
  UnlockForEach([&](const StreamKey& key, const TrackedStream& stream) { return MayMarkNow(key) && is_wanted(stream); },
                [&](const StreamKey& key) { UnlockToMark(lock, key, 0, In::kElsewhere); });
}

// ---- reports -------------------------------------------------------------------------------------------------------

void DeviceTracker::AfterSettling() {
  streams_.ForgetGone();
  if (reports_.HasDeadline() || deadlines_->Any()) UpdateDeadline();
  reports_.Publish(times_.TotalNs());
  // An account with a grant means work, so there should be none. This ensures that nothing is launched after an "idle".
  if (entered_ == 0 && reports_.Launched() == 0) TakeBackAll();
  if (entered_ > 0 || reports_.Launched() > 0 || !reports_.IsBusy()) return UpdateWaits();
  admission_.ForgetHostAhead();
  reports_.SetIdle();
}

// The earliest deadline of the busy streams.
void DeviceTracker::UpdateDeadline() {
  std::uint64_t earliest = 0;
  for (const auto& [key, stream] : streams_) {
    if (stream.busy_since_ns == 0) continue;
    const std::uint64_t us = deadlines_->Of(key.handle);
    if (us == 0) continue;
    const std::uint64_t at = stream.busy_since_ns + us * 1000;
    if (earliest == 0 || at < earliest) earliest = at;
  }
  reports_.SetDeadline(earliest, entered_ > 0 || reports_.Launched() > 0);
}

void DeviceTracker::DeadlinesChanged() {
  const Lock lock(mutex_);
  TakeBackAll();
  for (auto& [key, stream] : streams_) {
    const bool is_busy = !stream.work.IsIdle() || stream.admitted > 0;
    if (is_busy && stream.busy_since_ns == 0) stream.busy_since_ns = MonotonicNs();
  }
  UpdateDeadline();
}

// ---- streams -------------------------------------------------------------------------------------------------------

void DeviceTracker::PrepareForCapture() {
  Lock lock(mutex_);
  TakeBackAll();
  UnlockToMarkEach(lock, [](const TrackedStream& stream) { return !stream.work.IsMarked(); });
}

void DeviceTracker::NoteStream(void* handle, bool is_non_blocking) {
  Lock lock(mutex_);
  streams_.NoteMade(handle, is_non_blocking);
  if (!is_non_blocking) TakeBack(StreamKey{});
  // From now on, a marker on the legacy default stream is a barrier for this stream. One may just be being recorded.
  if (!is_non_blocking) unpinned_.wait(lock, [this] { return marking_legacy_ == 0; });
}

void DeviceTracker::ForgetStream(void* handle) {
  Lock lock(mutex_);
  streams_.NoteDestroyed(handle);
  const StreamKey key{handle, 0};
  TrackedStream* const stream = streams_.Known(key);
  if (stream == nullptr) return;
  // Recording takes microseconds, and the runtime would make the destroying thread wait, too.
  unpinned_.wait(lock, [stream] { return stream->pins == 0; });
  // The runtime finishes the rest of a destroyed stream's work later, and cannot be asked about it any more.
  TakeBack(key);
  CloseOpen(*stream);
  Settle(key, *stream, next_batch_);
  markers_.Give(stream->work.EndTime());
  accounts_.Free(StreamAccounts::OwnerOf(key));
  streams_.Forget(key);
  UnlockToFinishSettling(lock);
}

void DeviceTracker::ForgetThread(std::uint64_t thread) {
  const Lock lock(mutex_);
  const StreamKey key{reinterpret_cast<void*>(kPerThreadHandle), thread};
  TrackedStream* const stream = streams_.Known(key);
  if (stream == nullptr) return;
  // The runtime may have ended for this thread, so it is not called here. The next poll settles marked work; work
  // behind the last marker settles now, because the runtime cannot be asked about it any more.
  CloseOpen(*stream);
  if (!stream->work.IsMarked()) Settle(key, *stream, next_batch_);
  streams_.NoteGone(stream);
  AfterSettling();
}

void DeviceTracker::ForgetDevice() {
  Lock lock(mutex_);
  unpinned_.wait(lock, [this] { return !measuring_.IsUnderWay() && !is_polling_ && !streams_.IsAnyPinned(); });
  TakeBackAll();
  accounts_.FreeAll();
  streams_.ForgetAll();
  events_.clear();
  markers_.Drop();
  measuring_.ForgetMarkers();
  times_.ForgetMarkers();
  ++epoch_;
  entered_ = syncing_ = blocked_ = 0;
  admission_.Clear();
  reports_.AddSettled(reports_.Launched());
  AfterSettling();
}

std::vector<Activity> DeviceTracker::TakeActivity() {
  const Lock lock(mutex_);
  FoldAll();
  std::vector<Activity> result;
  for (auto& [key, stream] : streams_) {
    if (stream.activity.launches == 0 && stream.activity.completions == 0) continue;
    result.push_back(stream.activity);
    stream.activity.launches = stream.activity.completions = 0;
  }
  return result;
}

std::uint64_t DeviceTracker::InFlightNs() {
  const Lock lock(mutex_);
  FoldAll();
  return admission_.InFlightNs();
}

std::size_t DeviceTracker::Streams() const {
  const Lock lock(mutex_);
  return streams_.Size();
}

bool DeviceTracker::IsBusy() const {
  const Lock lock(mutex_);
  return reports_.IsBusy();
}

}  // namespace xschedd::shim
