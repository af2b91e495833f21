// The rare steps of a launch: it waits, is marked, fails, or is the first on its stream.
#include "client-shim/core/device_launch.h"

#include "common/clock.h"

namespace xschedd::shim {
namespace {

// Where the cost of its work is known, a stream that becomes busy has no start marker for at most this long and this
// many times in a row. The markers in between show changes of costs.
constexpr std::uint64_t kStartMarkerIntervalNs = 10'000'000;
constexpr std::uint32_t kMaxStartsSkipped = 7;

}  // namespace

// ---- entered -------------------------------------------------------------------------------------------------------

void DeviceLaunch::Enter(std::uint64_t now_ns) {
  const std::lock_guard lock(tracker_->mutex_);
  EnterLocked(now_ns);
}

void DeviceLaunch::NewDeadline(TrackedStream* stream) {
  if (stream->busy_since_ns != 0) return;
  stream->busy_since_ns = tracker_->last_submit_ns_;
  tracker_->UpdateDeadline();
}

// ---- admitted ------------------------------------------------------------------------------------------------------

bool DeviceLaunch::Admit(const Window& window, bool force) {
  const std::lock_guard lock(tracker_->mutex_);
  return IsVoid() || AdmitLocked(State(), window, force);
}

// After HasRoomBesidePromises has found none: takes all promises back, and then also counts stream by stream.
[[gnu::noinline]] bool DeviceLaunch::HasRoom(const TrackedStream& stream, const Window& window,
                                             std::uint64_t cost_ns) const {
  tracker_->TakeBackAll();
  return tracker_->admission_.HasRoom(window, cost_ns) ||
         tracker_->admission_.HasRoomBeside(window, stream, cost_ns, MonotonicNs()) ||
         tracker_->captures_->AreCallsForbidden();
}

void DeviceLaunch::AwaitRoom() {
  tracker_->AwaitRoom(epoch_, room_generation_);
}

void DeviceLaunch::Start(bool may_time) {
  const std::lock_guard lock(tracker_->mutex_);
  if (IsVoid()) return;
  State().submitted_ns = tracker_->last_submit_ns_ = MonotonicNs();  // it may have waited since Enter
  UnlockToStart(State(), may_time);
}

[[gnu::noinline]] void DeviceLaunch::UnlockToMarkStart(TrackedStream& stream, bool may_be_timed,
                                                       bool is_first_of_batch) {
  DeviceTracker& tracker = *tracker_;
  if (tracker.captures_->AreCallsForbidden()) return;
  Relock relock(tracker_);
  Lock& lock = relock.lock;
  const bool was_idle = stream.work.IsIdle();
  const DeviceTracker::Pin pin(tracker_, &stream);
  if (may_be_timed) {
    CostTable& costs = tracker.times_.Costs();
    const std::uint64_t now = tracker.last_submit_ns_;
    const bool is_marked = !was_idle && IsMarkerDue(window_us_, stream.work.UnmarkedNs() + weight_ns_, weight_ns_,
                                                    now - stream.marked_at_ns);
    if (costs.IsTimingDue(key_, now, is_marked)) {
      stop_ = tracker.markers_.UnlockToTake(lock);
      if (stop_ != nullptr) costs.ChosenForTiming(key_, now);
    }
  }
  if (is_first_of_batch) tracker.UnlockToMark(lock, stream_, 0, DeviceTracker::In::kOwnLaunch);
  if (!IsVoid() && stream.work.From() != TimedFrom::kMarker) UnlockToAnchor(lock, stream);
}

// Gives this launch a point from which its time is measured, unless its cost is known.
void DeviceLaunch::UnlockToAnchor(Lock& lock, TrackedStream& stream) {
  DeviceTracker& tracker = *tracker_;
  const bool is_by_cost = IsSettled() && stop_ == nullptr;
  if (!stream.work.IsIdle()) {
    // Work that is counted by its cost must end before this launch, unless it has a marker already.
    if (stream.work.From() == TimedFrom::kCost && !is_by_cost && stream.work.OldestMarked() == nullptr)
      tracker.UnlockToMark(lock, stream_, 0, DeviceTracker::In::kOwnLaunch);
    return;
  }
  const bool is_due = stream.starts_skipped >= kMaxStartsSkipped ||
                      tracker.last_submit_ns_ - stream.started_ns >= kStartMarkerIntervalNs;
  if (is_by_cost && !is_due) {
    ++stream.starts_skipped;
    stream.work.TimeFrom(TimedFrom::kCost);
    return;
  }
  if (stream.work.From() == TimedFrom::kCost && stream.admitted > 1) {
    stream.work.TimeFrom(TimedFrom::kNowhere);  // a start marker could come behind another thread's launch
    return;
  }
  void* marker = tracker.markers_.UnlockToTake(lock);
  const bool recorded = marker != nullptr && tracker.markers_.UnlockToRecord(lock, marker, stream_.handle);
  if (recorded && !IsVoid() && stream.work.From() == TimedFrom::kNowhere) {
    stream.work.TimeFrom(TimedFrom::kMarker, marker);
    stream.marked_at_ns = stream.started_ns = tracker.last_submit_ns_;
    stream.starts_skipped = 0;
    stream.recorded_ns = MonotonicNs();
  } else {
    tracker.markers_.Give(marker);
  }
}

// ---- called --------------------------------------------------------------------------------------------------------

void DeviceLaunch::BeginWait(bool drains) {
  if (drains) {
    const Snapshot before = tracker_->BeginSync(SyncScope::kStream, stream_);
    if (before.epoch != epoch_) return tracker_->EndSync(before, false);  // this launch is void
    drained_batch_ = before.last_batch;
    stage_ = Stage::kDrains;
    return;
  }
  const std::lock_guard lock(tracker_->mutex_);
  if (IsVoid()) return;
  ++tracker_->blocked_;
  stage_ = Stage::kMayWait;
  tracker_->UpdateWaits();
}

// ---- left ----------------------------------------------------------------------------------------------------------

// The call of a first launch may take long. Its stream has work from the end of the call on.
[[gnu::noinline]] void DeviceLaunch::BecomeBusy(TrackedStream* stream) {
  stream->progress_ns = tracker_->last_submit_ns_ = MonotonicNs();
}

[[gnu::noinline]] void DeviceLaunch::UnlockToMarkEnd(const TrackedStream& stream, bool is_due) {
  Relock relock(tracker_);
  const bool is_timed = stop_ != nullptr && stream.admissions == admission_number_;
  const LaunchKey timed = is_timed ? key_ : 0;
  const bool is_marked =
      (is_timed || is_due) && tracker_->UnlockToMark(relock.lock, stream_, timed, DeviceTracker::In::kOwnLaunch, stop_);
  if (!is_marked) tracker_->markers_.Give(stop_);
}

// For a launch that leaves nothing in flight: it was not admitted, failed, or has finished already.
[[gnu::noinline]] void DeviceLaunch::LeaveWithNothing(bool was_admitted, bool ok) {
  DeviceTracker& tracker = *tracker_;
  if (was_admitted) {
    TrackedStream& stream = State();
    Admission::Leave(&stream);
    tracker.admission_.Remove(&stream, InFlight{1, weight_ns_});
    if (ok) {
      tracker.reports_.AddFinished();
      ++stream.activity.launches;
      ++stream.activity.completions;
      tracker.times_.Costs().Launched(key_, function_, tracker.times_.Average().AverageNs(), place_);
    }
    if (stream.work.IsIdle() && stream.admitted == 0) stream.busy_since_ns = 0;
  }
  tracker.markers_.Give(stop_);
  tracker.AfterSettling();
}

// Lets the next launches on the stream be counted without the device's lock.
[[gnu::noinline]] void DeviceLaunch::Grant() {
  if (!IsVoid()) tracker_->GrantAccount(&State(), key_, function_, weight_ns_);
}

[[gnu::noinline]] void DeviceLaunch::LeaveByDevice(bool ok, bool finished) {
  if (stage_ != Stage::kAdmitted && stage_ != Stage::kOnAccount) [[unlikely]]
    return LeaveOtherwise(ok, finished);
  stage_ = Stage::kLeft;
  const std::lock_guard lock(tracker_->mutex_);
  UnlockToLeave(true, ok, finished);
}

// For a launch that was not admitted, or whose call may have waited. One that could not even enter, for lack of memory,
// has nothing to leave.
[[gnu::noinline]] void DeviceLaunch::LeaveOtherwise(bool ok, bool finished) {
  const Stage from = std::exchange(stage_, Stage::kLeft);
  if (from <= Stage::kMade) return;
  {
    const std::lock_guard lock(tracker_->mutex_);
    UnlockToLeave(from >= Stage::kAdmitted, ok, finished);
    if (from == Stage::kMayWait && !IsVoid()) {
      --tracker_->blocked_;
      tracker_->UpdateWaits();
    }
  }
  if (from == Stage::kDrains)
    tracker_->EndSync(Snapshot{SyncScope::kStream, false, stream_, drained_batch_, epoch_}, ok);
}

// If memory has run out, a marker may be lost, but the launch still leaves what it has entered.
void DeviceLaunch::Abandon() noexcept {
  try {
    Leave(false, false);
  } catch (...) {
    return;
  }
}

}  // namespace xschedd::shim
