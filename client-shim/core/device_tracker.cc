#include "client-shim/core/device_tracker.h"

#include <sched.h>

#include "common/clock.h"

namespace xschedd::shim {
namespace {

// How long a device must have been quiet before the agent drops a marker of its own there. With the agent's tick this
// keeps a late "idle" under 200 µs.
constexpr std::uint64_t kQuietNs = 80'000;

// Events remembered at most; a program that records more without destroying them loses the exactness, not the count.
constexpr std::size_t kMaxEvents = 4096;

}  // namespace

// ---- session -------------------------------------------------------------------------------------------------------

void DeviceTracker::Reset(TrackerSink* sink) {
  const Lock lock(mutex_);
  for (auto& [key, stream] : streams_) {
    for (const Batch& batch : stream.batches)
      GiveMarker(batch.marker);
    GiveMarker(stream.anchor);
    StreamState fresh;
    fresh.pins = stream.pins;
    fresh.non_blocking = stream.non_blocking;
    fresh.activity.stream = key;
    stream = std::move(fresh);
  }
  events_.clear();
  ++epoch_;
  entered_ = admitted_ = launched_ = syncing_ = 0;
  limit_ = kUnlimited;
  submitted_ = completed_ = gpu_time_ns_ = 0;
  if (busy_ && sink_ != nullptr && sink == nullptr) sink_->Report(abi::TransitionKind::kIdle);
  busy_ = false;
  sink_ = sink;
  Publish();
}

// ---- the submitting thread -----------------------------------------------------------------------------------------

Ticket DeviceTracker::Enter(const StreamKey& key) {
  const Lock lock(mutex_);
  ++entered_;
  if (!busy_) {
    busy_ = true;
    if (sink_ != nullptr) sink_->Report(abi::TransitionKind::kBusy);
  }
  return Ticket{key, epoch_, false};
}

bool DeviceTracker::Admit(Ticket* ticket, const Window& window, bool force) {
  const Lock lock(mutex_);
  if (ticket->epoch != epoch_) return true;
  limit_ = LaunchLimit(window, estimate_);
  const bool is_full = limit_ != kUnlimited && launched_ + admitted_ >= limit_;
  if (is_full && !force && !captures_->Forbid()) return false;
  ++admitted_;
  ++Find(ticket->stream).admitted;
  ticket->admitted = true;
  return true;
}

void DeviceTracker::Start(const Ticket& ticket) {
  Lock lock(mutex_);
  if (ticket.epoch != epoch_) return;
  StreamState& stream = Find(ticket.stream);
  if (!IsStreamIdle(stream) || stream.anchor != nullptr || captures_->Forbid()) return;
  ++stream.pins;
  void* marker = TakeMarker(lock);
  lock.unlock();
  const bool recorded = marker != nullptr && vendor_->record_marker(device_, marker, ticket.stream.handle);
  lock.lock();
  --stream.pins;
  if (recorded && ticket.epoch == epoch_ && stream.anchor == nullptr) {
    stream.anchor = marker;
    stream.since_anchor = 0;
  } else {
    GiveMarker(marker);
  }
}

void DeviceTracker::Leave(const Ticket& ticket, bool ok, bool finished, const Window& window) {
  Lock lock(mutex_);
  if (ticket.epoch != epoch_) return;
  --entered_;
  if (ticket.admitted) {
    StreamState& stream = Find(ticket.stream);
    --admitted_;
    if (stream.admitted > 0) --stream.admitted;  // 0: the stream was destroyed meanwhile, and this state is a new one
    if (ok) {
      ++submitted_;
      ++stream.activity.launches;
    }
    if (ok && finished) {
      ++completed_;
      ++stream.activity.completions;
    } else if (ok) {
      ++launched_;
      ++stream.open;
      last_submit_ns_ = MonotonicNs();
      const std::uint32_t spacing = MarkerSpacing(LaunchLimit(window, estimate_));
      // Only the thread itself can reach its own default stream: no agent will mark it later.
      const bool is_due = (spacing != 0 && stream.open >= spacing) || !MayAgentMark(ticket.stream);
      if (is_due) Mark(lock, ticket.stream);
    }
  }
  AfterSettling();
}

void DeviceTracker::MakeRoom() {
  Lock lock(mutex_);
  bool has_marker = false;
  for (const auto& [key, stream] : streams_) {
    for (const Batch& batch : stream.batches)
      has_marker = has_marker || batch.marker != nullptr;
  }
  if (!has_marker) {
    std::vector<StreamKey> unmarked;
    for (const auto& [key, stream] : streams_) {
      if (!IsStreamIdle(stream) && MayAgentMark(key)) unmarked.push_back(key);
    }
    for (const StreamKey& key : unmarked)
      Mark(lock, key);
  }
  PollLocked(lock);
}

// ---- markers -------------------------------------------------------------------------------------------------------

DeviceTracker::StreamState& DeviceTracker::Find(const StreamKey& key) {
  const auto [found, is_new] = streams_.try_emplace(key);
  if (is_new) {
    found->second.activity.stream = key;
    found->second.non_blocking = non_blocking_.count(key.handle) != 0;
  }
  return found->second;
}

void* DeviceTracker::TakeMarker(Lock& lock) {
  if (!pool_.empty()) {
    void* marker = pool_.back();
    pool_.pop_back();
    return marker;
  }
  lock.unlock();
  void* marker = vendor_->create_marker(device_);
  lock.lock();
  return marker;
}

std::uint64_t DeviceTracker::Close(StreamState& stream, void* marker) {
  if (stream.open == 0 && marker == nullptr) return stream.batches.empty() ? 0 : stream.batches.back().id;
  const std::uint64_t id = next_batch_++;
  stream.batches.push_back(Batch{id, stream.open, marker});
  stream.open = 0;
  return id;
}

// Records a marker behind everything launched on the stream so far. The batch is closed before the lock is released for
// the call, so that a launch of another thread meanwhile is not covered by a marker that may be in front of it.
void DeviceTracker::Mark(Lock& lock, const StreamKey& key) {
  if (captures_->Forbid()) return;
  const std::uint64_t epoch = epoch_;
  StreamState& stream = Find(key);
  ++stream.pins;  // keeps `stream` where it is
  void* marker = TakeMarker(lock);
  if (marker == nullptr || epoch != epoch_) {
    --stream.pins;
    GiveMarker(marker);
    return;
  }
  if (stream.open == 0 && stream.batches.empty()) {
    --stream.pins;
    GiveMarker(marker);
    return;
  }
  const std::uint64_t id = next_batch_++;
  stream.batches.push_back(Batch{id, stream.open, nullptr});
  stream.open = 0;
  lock.unlock();
  const bool recorded = vendor_->record_marker(device_, marker, key.handle);
  lock.lock();
  --stream.pins;
  if (recorded && epoch == epoch_) {
    for (Batch& batch : stream.batches) {
      if (batch.id != id) continue;
      batch.marker = marker;
      return;
    }
  }
  // Not recorded, or its batch has been settled meanwhile by a synchronisation.
  GiveMarker(marker);
}

void DeviceTracker::Measure(StreamState& stream, void* marker) {
  std::uint64_t ns = 0;
  // Both are done, so this does not block.
  const bool may_ask = stream.anchor != nullptr && stream.since_anchor > 0 && !captures_->Forbid();
  if (may_ask && vendor_->elapsed_ns(stream.anchor, marker, &ns)) {
    gpu_time_ns_ += ns;
    estimate_.Add(ns, stream.since_anchor);
  }
  GiveMarker(stream.anchor);
  stream.anchor = marker;
  stream.since_anchor = 0;
}

void DeviceTracker::Settle(StreamState& stream, std::uint64_t last_batch) {
  while (!stream.batches.empty() && stream.batches.front().id <= last_batch) {
    const Batch batch = stream.batches.front();
    stream.batches.pop_front();
    launched_ -= batch.launches;
    completed_ += batch.launches;
    stream.activity.completions += batch.launches;
    stream.since_anchor += batch.launches;
    if (batch.marker != nullptr) Measure(stream, batch.marker);
  }
  if (IsStreamIdle(stream) && stream.admitted == 0) {
    // What comes next begins its own time: the gap until then is not ours.
    GiveMarker(stream.anchor);
    stream.anchor = nullptr;
    stream.since_anchor = 0;
  }
}

void DeviceTracker::PollLocked(Lock& lock) {
  struct Candidate {
    StreamKey key;
    std::uint64_t id;
    void* marker;
    MarkerState state;
  };
  const std::uint64_t epoch = epoch_;
  // Again while something is found: behind a marker that is done there may be others that are.
  for (bool again = !captures_->Forbid(); again;) {
    again = false;
    std::vector<Candidate> candidates;
    for (const auto& [key, stream] : streams_) {
      for (const Batch& batch : stream.batches) {
        if (batch.marker == nullptr) continue;
        candidates.push_back({key, batch.id, batch.marker, MarkerState::kPending});
        break;
      }
    }
    if (candidates.empty()) break;
    lock.unlock();
    for (Candidate& candidate : candidates)
      candidate.state = vendor_->query_marker(candidate.marker);
    lock.lock();
    if (epoch != epoch_) return;
    for (const Candidate& candidate : candidates) {
      if (candidate.state == MarkerState::kPending) continue;
      const auto found = streams_.find(candidate.key);
      if (found == streams_.end()) continue;
      // Settled meanwhile, and the marker in use again: then the answer may be about its new use. The batch is gone, so
      // nothing is settled by it.
      // A marker that cannot be queried any more will never say anything: what it stood for is let go.
      Settle(found->second, candidate.id);
      again = true;
    }
  }
  AfterSettling();
}

void DeviceTracker::Poll() {
  Lock lock(mutex_);
  PollLocked(lock);
}

void DeviceTracker::AfterSettling() {
  if (busy_ && entered_ == 0 && launched_ == 0) {
    busy_ = false;
    Publish();
    if (sink_ != nullptr) sink_->Report(abi::TransitionKind::kIdle);
    return;
  }
  Publish();
}

void DeviceTracker::Publish() {
  if (sink_ != nullptr) sink_->Publish(launched_, limit_, submitted_, completed_, gpu_time_ns_);
}

// ---- proofs of completion ------------------------------------------------------------------------------------------

Snapshot DeviceTracker::BeginSync(SyncScope scope, const StreamKey& key) {
  Lock lock(mutex_);
  const std::uint64_t epoch = epoch_;
  std::vector<StreamKey> open;
  for (const auto& [other, stream] : streams_) {
    const bool is_covered = other == key || (scope == SyncScope::kDevice && other.thread == 0);
    if (stream.open > 0 && is_covered) open.push_back(other);
  }
  for (const StreamKey& other : open)
    Mark(lock, other);
  if (epoch != epoch_) return Snapshot{};
  for (auto& [other, stream] : streams_)
    Close(stream, nullptr);
  ++syncing_;
  return Snapshot{scope, key, next_batch_ - 1, epoch_};
}

void DeviceTracker::EndSync(const Snapshot& snapshot, bool ok) {
  const Lock lock(mutex_);
  if (snapshot.epoch != epoch_) return;
  if (syncing_ > 0) --syncing_;
  if (!ok) return;
  for (auto& [key, stream] : streams_) {
    const bool is_same = key == snapshot.stream;
    // The legacy default stream waits for all streams of its device that are not made non-blocking; that of another
    // thread counts among these.
    const bool is_behind_legacy = snapshot.stream.handle == nullptr && !stream.non_blocking;
    if (snapshot.scope == SyncScope::kDevice || is_same ||
        (snapshot.scope == SyncScope::kStream && is_behind_legacy && key.handle != nullptr && key.thread == 0)) {
      Settle(stream, snapshot.last_batch);
    }
  }
  AfterSettling();
}

void DeviceTracker::EventRecorded(void* event, const StreamKey& key) {
  const Lock lock(mutex_);
  const auto found = streams_.find(key);
  if (found == streams_.end() || IsStreamIdle(found->second)) {
    events_.erase(event);
    return;
  }
  if (events_.size() >= kMaxEvents) events_.clear();
  events_[event] = Snapshot{SyncScope::kEvent, key, Close(found->second, nullptr), epoch_};
}

void DeviceTracker::EventDestroyed(void* event) {
  const Lock lock(mutex_);
  events_.erase(event);
}

Snapshot DeviceTracker::BeginEventSync(void* event) {
  const Lock lock(mutex_);
  const auto found = events_.find(event);
  if (found == events_.end()) return Snapshot{};
  ++syncing_;
  return found->second;
}

// ---- the agent -----------------------------------------------------------------------------------------------------

DeviceTracker::Attention DeviceTracker::Tick(std::uint64_t now_ns) {
  Lock lock(mutex_);
  if (launched_ == 0) return Attention::kNone;
  // A thread in a synchronising call settles; one that waits for the window polls. The agent only stands by.
  if (syncing_ > 0 || captures_->Forbid()) return Attention::kSoon;
  if (now_ns - last_submit_ns_ >= kQuietNs) {
    std::vector<StreamKey> unmarked;
    for (const auto& [key, stream] : streams_) {
      if (!MayAgentMark(key)) continue;
      const bool is_marked = stream.open == 0 && (stream.batches.empty() || stream.batches.back().marker != nullptr);
      if (!is_marked && stream.pins == 0) unmarked.push_back(key);
    }
    for (const StreamKey& key : unmarked)
      Mark(lock, key);
  }
  PollLocked(lock);
  return launched_ == 0 ? Attention::kNone : Attention::kSoon;
}

// ---- streams -------------------------------------------------------------------------------------------------------

void DeviceTracker::NoteNonBlocking(void* stream) {
  const Lock lock(mutex_);
  non_blocking_[stream] = true;
}

void DeviceTracker::ForgetStream(void* handle) {
  Lock lock(mutex_);
  non_blocking_.erase(handle);
  const auto found = streams_.find(StreamKey{handle, 0});
  if (found == streams_.end()) return;
  StreamState& stream = found->second;
  // Recording takes microseconds; the runtime would make the destroying thread wait just the same.
  while (stream.pins > 0) {
    lock.unlock();
    sched_yield();
    lock.lock();
  }
  // The runtime finishes what is left of a destroyed stream in its own time: nothing can be asked about it any more.
  Close(stream, nullptr);
  Settle(stream, next_batch_);
  GiveMarker(stream.anchor);
  streams_.erase(found);
  AfterSettling();
}

void DeviceTracker::ForgetDevice() {
  Lock lock(mutex_);
  for (auto& [key, stream] : streams_) {
    while (stream.pins > 0) {
      lock.unlock();
      sched_yield();
      lock.lock();
    }
  }
  streams_.clear();
  events_.clear();
  non_blocking_.clear();
  pool_.clear();
  ++epoch_;
  completed_ += launched_;
  entered_ = admitted_ = launched_ = syncing_ = 0;
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

std::uint64_t DeviceTracker::AverageNs() const {
  const Lock lock(mutex_);
  return estimate_.AverageNs();
}

std::uint32_t DeviceTracker::InFlight() const {
  const Lock lock(mutex_);
  return launched_;
}

bool DeviceTracker::IsBusy() const {
  const Lock lock(mutex_);
  return busy_;
}

}  // namespace xschedd::shim
