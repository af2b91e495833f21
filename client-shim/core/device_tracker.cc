#include "client-shim/core/device_tracker.h"

#include <algorithm>

#include "common/clock.h"

namespace xschedd::shim {
namespace {

// Streams looked at with the lock released once; there may be more rounds.
constexpr std::size_t kRound = 16;

}  // namespace

// ---- session -------------------------------------------------------------------------------------------------------

void DeviceTracker::Reset(TrackerSink* sink) {
  const Lock lock(mutex_);
  for (auto& [key, stream] : streams_) {
    stream.work.ForEachMarker([this](void* marker) { markers_.Give(marker); });
    StreamState fresh;
    fresh.pins = stream.pins;
    fresh.own_marker = stream.own_marker;
    fresh.recorded_ns = stream.recorded_ns;
    fresh.progress_ns = stream.progress_ns;
    fresh.non_blocking = stream.non_blocking;
    fresh.is_gone = stream.is_gone;
    fresh.activity.stream = key;
    stream = std::move(fresh);
  }
  for (std::size_t i = 0; i < unmeasured_.Size(); ++i) {
    markers_.Give(unmeasured_[i].done.start);
    markers_.Give(unmeasured_[i].done.marker);
  }
  unmeasured_.Clear();
  events_.clear();
  times_.Clear();
  ++epoch_;
  entered_ = launched_ = syncing_ = blocked_ = 0;
  is_host_ahead_ = false;
  in_flight_ = InFlight{};
  submitted_ = completed_ = 0;
  limit_window_ = Window{};
  deadline_ns_ = 0;
  if (busy_ && sink_ != nullptr && sink == nullptr) sink_->Report(abi::TransitionKind::kIdle, 0);
  busy_ = waits_ = false;
  sink_ = sink;
  ledger_ = sink != nullptr ? &sink->Counters() : &nobodys_;
  room_waiters_.MoreRoom();
  PublishLimit();
  Publish();
}

// ---- markers -------------------------------------------------------------------------------------------------------

DeviceTracker::StreamState& DeviceTracker::FindInMap(const StreamKey& key) {
  const auto [found, is_new] = streams_.try_emplace(key);
  if (is_new) {
    found->second.activity.stream = key;
    found->second.non_blocking = non_blocking_.count(key.handle) != 0;
    if (key != StreamKey{} && !found->second.non_blocking) blocking_.insert(key.handle);
  }
  found_[PlaceOf(key)] = Found{key, &found->second};
  return found->second;
}

void* DeviceTracker::UnlockToTakeMarker(Lock& lock) {
  if (void* const free = markers_.Take()) return free;
  lock.unlock();
  void* marker = nullptr;
  {
    const RelaxedThread relaxed(*vendor_);
    marker = vendor_->create_marker(device_);
  }
  lock.lock();
  return marker;
}

// With the lock released for the call.
bool DeviceTracker::UnlockToRecord(Lock& lock, void* marker, const StreamKey& key) {
  lock.unlock();
  bool is_recorded = false;
  {
    const RelaxedThread relaxed(*vendor_);
    is_recorded = vendor_->record_marker(device_, marker, key.handle);
  }
  lock.lock();
  return is_recorded;
}

// The newest batch of the stream; 0: none.
std::uint64_t DeviceTracker::CloseOpen(StreamState& stream) {
  if (stream.work.HasOpen()) stream.work.Close(next_batch_++);
  return stream.work.NewestBatch();
}

// Records a marker behind everything launched on the stream so far. The batch is closed before the lock is released for
// the call, so that a launch of another thread meanwhile is not covered by a marker that may be in front of it.
void DeviceTracker::UnlockToMark(Lock& lock, const StreamKey& key, LaunchKey timed, In in) {
  if (captures_->Forbid()) return;
  const std::uint64_t epoch = epoch_;
  StreamState& stream = Find(key);
  const Pin pin(this, &stream);
  std::optional<Captures::Elsewhere> elsewhere;
  if (in == In::kElsewhere && !elsewhere.emplace(captures_).IsAllowed()) return;
  void* marker = UnlockToTakeMarker(lock);
  // Asked last, and under the lock: a blocking stream that is made from now on waits (NoteStream).
  const bool may_mark = in == In::kOwnLaunch || MayMarkNow(key);
  if (marker == nullptr || epoch != epoch_ || stream.work.IsIdle() || !may_mark) {
    markers_.Give(marker);
    return;
  }
  const std::uint64_t id = next_batch_++;
  stream.work.CloseToMark(id, timed);
  stream.own_marker = kRecording;
  stream.marked_at_ns = last_submit_ns_;
  const bool is_barrier = in == In::kElsewhere && key == StreamKey{};
  marking_legacy_ += is_barrier ? 1 : 0;
  const bool recorded = UnlockToRecord(lock, marker, key);
  if (is_barrier && --marking_legacy_ == 0) unpinned_.notify_all();
  if (stream.pins == 1) stream.own_marker = next_batch_++;
  if (recorded) stream.recorded_ns = MonotonicNs();
  if (recorded && epoch == epoch_ && stream.work.SetMarker(id, marker)) return;
  // Not recorded, or its batch has been settled meanwhile by a synchronisation.
  markers_.Give(marker);
}

// Marks each stream that `wanted` says.
void DeviceTracker::UnlockToMarkEach(Lock& lock, bool (*wanted)(const StreamState&)) {
  UnlockForEach([&](const StreamKey& key, const StreamState& stream) { return MayMarkNow(key) && wanted(stream); },
                [&](const StreamKey& key) { UnlockToMark(lock, key, 0, In::kElsewhere); });
}

void DeviceTracker::UnlockToPoll(Lock& lock) {
  struct Candidate {
    StreamKey key;
    std::uint64_t id;
    void* marker;
    MarkerState state;
  };
  if (is_polling_ || captures_->Forbid()) return;
  is_polling_ = true;
  const std::uint64_t epoch = epoch_;
  std::array<Candidate, kRound> candidates;
  std::optional<StreamKey> last;
  while (epoch == epoch_) {
    std::size_t count = 0;
    auto next = last ? streams_.upper_bound(*last) : streams_.begin();
    for (; next != streams_.end() && count < kRound; ++next) {
      const Batch* const oldest = next->second.work.OldestMarked();
      if (oldest != nullptr) candidates[count++] = {next->first, oldest->id, oldest->marker, MarkerState::kPending};
    }
    const bool is_last = next == streams_.end();
    if (count == 0) break;
    const StreamKey reached = candidates[count - 1].key;
    lock.unlock();
    {
      const RelaxedThread relaxed(*vendor_);
      for (std::size_t i = 0; i < count; ++i)
        candidates[i].state = vendor_->query_marker(candidates[i].marker);
    }
    lock.lock();
    if (epoch != epoch_) break;
    bool is_any_done = false;
    for (std::size_t i = 0; i < count; ++i) {
      if (candidates[i].state == MarkerState::kPending) continue;
      const auto found = streams_.find(candidates[i].key);
      if (found == streams_.end()) continue;
      // Settled meanwhile, and the marker in use again: then the answer may be about its new use. The batch is gone, so
      // nothing is settled by it.
      // A marker that cannot be queried any more will never say anything: what it stood for is let go.
      Settle(found->first, found->second, candidates[i].id);
      if (found->second.work.IsIdle() && found->second.pins == 0) found->second.own_marker = 0;
      is_any_done = true;
    }
    if (is_any_done) continue;  // the same streams again: behind a marker that is done there may be others that are
    if (is_last) break;
    last = reached;
  }
  is_polling_ = false;
  unpinned_.notify_all();
  UnlockToMeasure(lock);
  AfterSettling();
}

void DeviceTracker::Poll() {
  Lock lock(mutex_);
  UnlockToPoll(lock);
}

void DeviceTracker::AfterSettling() {
  if (gone_ > 0) {
    ForgetFound();
    std::erase_if(streams_, [this](const auto& entry) {
      const bool is_over = entry.second.is_gone && entry.second.work.IsIdle() && entry.second.pins == 0;
      gone_ -= is_over ? 1 : 0;
      return is_over;
    });
  }
  if (deadline_ns_ != 0 || deadlines_->Any()) UpdateDeadline();
  if (busy_ && entered_ == 0 && launched_ == 0) {
    busy_ = waits_ = is_host_ahead_ = false;
    Publish();
    if (sink_ != nullptr) sink_->Report(abi::TransitionKind::kIdle, 0);
    return;
  }
  UpdateWaits();
  Publish();
}

void DeviceTracker::ReportBusy() {
  if (sink_ != nullptr) sink_->Report(waits_ ? abi::TransitionKind::kWaits : abi::TransitionKind::kBusy, deadline_ns_);
}

void DeviceTracker::UpdateWaits() {
  if (sink_ == nullptr || !busy_) return;
  const bool waits = (blocked_ > 0 || is_host_ahead_) && sink_->WantsWaits();
  if (waits == waits_) return;
  waits_ = waits;
  ReportBusy();
}

// The earliest of what busy streams want. A change is told at once if the daemon knows us as busy.
void DeviceTracker::UpdateDeadline() {
  std::uint64_t earliest = 0;
  for (const auto& [key, stream] : streams_) {
    if (stream.busy_since_ns == 0) continue;
    const std::uint64_t us = deadlines_->Of(key.handle);
    if (us == 0) continue;
    const std::uint64_t at = stream.busy_since_ns + us * 1000;
    if (earliest == 0 || at < earliest) earliest = at;
  }
  if (earliest == deadline_ns_) return;
  deadline_ns_ = earliest;
  if (busy_ && (entered_ > 0 || launched_ > 0)) ReportBusy();
}

void DeviceTracker::DeadlinesChanged() {
  const Lock lock(mutex_);
  for (auto& [key, stream] : streams_) {
    const bool is_busy = !stream.work.IsIdle() || stream.admitted > 0;
    if (is_busy && stream.busy_since_ns == 0) stream.busy_since_ns = MonotonicNs();
  }
  UpdateDeadline();
}

// relaxed: statistics; the lock keeps them in order among themselves.
void DeviceTracker::PublishLimit() {
  ledger_->window_limit.store(LaunchLimit(limit_window_, times_.Average()), std::memory_order_relaxed);
}

void DeviceTracker::Publish() {
  ledger_->in_flight.store(launched_, std::memory_order_relaxed);
  ledger_->submitted.store(submitted_, std::memory_order_relaxed);
  // release: never more than was submitted, to whoever reads it first.
  ledger_->completed.store(completed_, std::memory_order_release);
  ledger_->gpu_time_ns.store(times_.TotalNs(), std::memory_order_relaxed);
}

// ---- streams -------------------------------------------------------------------------------------------------------

void DeviceTracker::PrepareForCapture() {
  Lock lock(mutex_);
  UnlockToMarkEach(lock, [](const StreamState& stream) { return !stream.work.IsMarked(); });
}

void DeviceTracker::NoteStream(void* handle, bool non_blocking) {
  Lock lock(mutex_);
  if (non_blocking) {
    non_blocking_.insert(handle);
    return;
  }
  blocking_.insert(handle);
  // From now on a marker on the legacy default stream is a barrier in this one's way; one may be under way.
  unpinned_.wait(lock, [this] { return marking_legacy_ == 0; });
}

void DeviceTracker::ForgetStream(void* handle) {
  Lock lock(mutex_);
  non_blocking_.erase(handle);
  blocking_.erase(handle);
  const auto found = streams_.find(StreamKey{handle, 0});
  if (found == streams_.end()) return;
  StreamState& stream = found->second;
  // Recording takes microseconds; the runtime would make the destroying thread wait just the same.
  unpinned_.wait(lock, [&stream] { return stream.pins == 0; });
  // The runtime finishes what is left of a destroyed stream in its own time: nothing can be asked about it any more.
  CloseOpen(stream);
  Settle(found->first, stream, next_batch_);
  markers_.Give(stream.work.EndTime());
  ForgetFound();
  streams_.erase(found);
  UnlockToMeasure(lock);
  AfterSettling();
}

void DeviceTracker::ForgetThread(std::uint64_t thread) {
  const Lock lock(mutex_);
  const auto found = streams_.find(StreamKey{reinterpret_cast<void*>(kPerThreadHandle), thread});
  if (found == streams_.end()) return;
  StreamState& stream = found->second;
  // The runtime may have ended for this thread: nothing of it is called from here. Whoever looks at markers next does
  // the rest; where there is none behind the last launch, nothing can be asked about it any more.
  CloseOpen(stream);
  if (!stream.work.IsMarked()) Settle(found->first, stream, next_batch_);
  stream.is_gone = true;
  ++gone_;
  AfterSettling();
}

void DeviceTracker::ForgetDevice() {
  Lock lock(mutex_);
  unpinned_.wait(lock, [this] { return !is_measuring_ && !is_polling_ && !IsAnyPinned(); });
  ForgetFound();
  streams_.clear();
  gone_ = 0;
  events_.clear();
  non_blocking_.clear();
  blocking_.clear();
  markers_.Drop();
  unmeasured_.Clear();
  clock_.Forget();
  times_.ForgetMarkers();
  ++epoch_;
  completed_ += launched_;
  entered_ = launched_ = syncing_ = blocked_ = 0;
  is_host_ahead_ = false;
  in_flight_ = InFlight{};
  AfterSettling();
}

std::vector<Activity> DeviceTracker::TakeActivity() {
  const Lock lock(mutex_);
  std::vector<Activity> result;
  for (auto& [key, stream] : streams_) {
    if (stream.activity.launches == 0 && stream.activity.completions == 0) continue;
    result.push_back(stream.activity);
    stream.activity.launches = stream.activity.completions = 0;
  }
  return result;
}

std::uint64_t DeviceTracker::InFlightNs() const {
  const Lock lock(mutex_);
  return in_flight_.cost_ns;
}

std::size_t DeviceTracker::Streams() const {
  const Lock lock(mutex_);
  return streams_.size();
}

bool DeviceTracker::IsAnyPinned() const {
  return std::any_of(streams_.begin(), streams_.end(), [](const auto& entry) { return entry.second.pins > 0; });
}

bool DeviceTracker::IsBusy() const {
  const Lock lock(mutex_);
  return busy_;
}

}  // namespace xschedd::shim
