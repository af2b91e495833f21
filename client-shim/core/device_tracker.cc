#include "client-shim/core/device_tracker.h"

#include <algorithm>

#include "common/clock.h"

namespace xschedd::shim {
namespace {

// A stream whose work has not moved for so long, and twice what it is known to cost, stands still.
constexpr std::uint64_t kStillNs = 5'000'000;

// Streams looked at with the lock released once; there may be more rounds.
constexpr std::size_t kRound = 16;

}  // namespace

// ---- session -------------------------------------------------------------------------------------------------------

void DeviceTracker::Reset(TrackerSink* sink) {
  const Lock lock(mutex_);
  for (auto& [key, stream] : streams_) {
    for (std::size_t i = 0; i < stream.batches.Size(); ++i)
      GiveMarker(stream.batches[i].marker);
    GiveMarker(stream.start);
    StreamState fresh;
    fresh.pins = stream.pins;
    fresh.own_marker = stream.own_marker;
    fresh.progress_ns = stream.progress_ns;
    fresh.non_blocking = stream.non_blocking;
    fresh.is_gone = stream.is_gone;
    fresh.activity.stream = key;
    stream = std::move(fresh);
  }
  for (std::size_t i = 0; i < unmeasured_.Size(); ++i) {
    GiveMarker(unmeasured_[i].start);
    GiveMarker(unmeasured_[i].marker);
  }
  unmeasured_.Clear();
  events_.clear();
  gpu_time_.Clear();
  ++epoch_;
  entered_ = launched_ = syncing_ = blocked_ = 0;
  is_far_ahead_ = false;
  in_flight_ = InFlight{};
  submitted_ = completed_ = 0;
  limit_window_ = Window{};
  deadline_ns_ = 0;
  if (busy_ && sink_ != nullptr && sink == nullptr) sink_->Report(abi::TransitionKind::kIdle, 0);
  busy_ = waits_ = false;
  sink_ = sink;
  ledger_ = sink != nullptr ? &sink->Counters() : &nobodys_;
  ++rooms_;
  room_.notify_all();
  PublishLimit();
  Publish();
}

// ---- the submitting thread -----------------------------------------------------------------------------------------

bool DeviceTracker::Begin(Ticket* ticket, const Window& window, bool may_time, std::uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  StreamState& stream = EnterLocked(ticket, now_ns);
  if (!AdmitLocked(ticket, stream, window, false)) return false;
  StartLocked(ticket, stream, may_time);
  return true;
}

Ticket DeviceTracker::Enter(const StreamKey& key, LaunchKey launch, LaunchKey function) {
  const std::lock_guard lock(mutex_);
  Ticket ticket;
  ticket.stream = key;
  ticket.key = launch;
  ticket.function = function;
  EnterLocked(&ticket, MonotonicNs());
  return ticket;
}

[[gnu::always_inline]] inline DeviceTracker::StreamState& DeviceTracker::EnterLocked(Ticket* ticket,
                                                                                     std::uint64_t now_ns) {
  StreamState& stream = Find(ticket->stream);
  ++entered_;
  ticket->state = &stream;
  ticket->epoch = epoch_;
  ticket->forgets = forgets_;
  ticket->admitted = false;
  // Of several threads the last to come here need not be the last that looked at the clock.
  if (last_submit_ns_ < now_ns) last_submit_ns_ = now_ns;
  if (deadlines_->Any()) [[unlikely]]
    NewDeadline(&stream);
  if (!busy_) [[unlikely]] {
    busy_ = true;
    ReportBusy();
  }
  return stream;
}

void DeviceTracker::NewDeadline(StreamState* stream) {
  if (stream->busy_since_ns != 0) return;
  stream->busy_since_ns = last_submit_ns_;
  UpdateDeadline();
}

bool DeviceTracker::Admit(Ticket* ticket, const Window& window, bool force) {
  const std::lock_guard lock(mutex_);
  return ticket->epoch != epoch_ || AdmitLocked(ticket, Find(ticket->stream), window, force);
}

[[gnu::always_inline]] inline bool DeviceTracker::AdmitLocked(Ticket* ticket, StreamState& stream, const Window& window,
                                                              bool force) {
  if (window.us != 0 && costs_.TakeJump()) [[unlikely]]
    Reprice();
  if (limit_window_.us != window.us || limit_window_.floor != window.floor) [[unlikely]] {
    limit_window_ = window;
    PublishLimit();
  }
  const CostTable::Known known = costs_.Look(ticket->key);
  std::uint64_t cost_ns = known.cost_ns;
  if (cost_ns == 0) cost_ns = costs_.ReckonedCostNs(ticket->key, ticket->function, average_.AverageNs());
  if (!force && !HasRoom(window, in_flight_, cost_ns) && !HasRoomBeside(*ticket, stream, window, cost_ns)) {
    ticket->rooms = rooms_;
    return false;
  }
  if (is_far_ahead_ && in_flight_.cost_ns < std::uint64_t{window.us} * 1000 / 2) [[unlikely]]
    NoLongerFarAhead();
  const std::uint64_t weight_ns = WeightNs(window, cost_ns);
  ticket->weight_ns = weight_ns;
  ticket->window_us = window.us;
  ticket->place = known.place;
  ticket->is_known = known.cost_ns != 0;
  ticket->admitted = true;
  AddInFlight(stream, InFlight{1, weight_ns});
  ++stream.admitted;
  ticket->turn = ++stream.turn;
  return true;
}

// Where there is room beside everything, the streams need not be looked at; here there is none.
[[gnu::noinline]] bool DeviceTracker::HasRoomBeside(const Ticket& ticket, const StreamState& stream,
                                                    const Window& window, std::uint64_t cost_ns) const {
  return MayRunSideBySide(window, stream.in_flight, cost_ns) ||
         HasRoom(window, CountedFor(ticket.stream, window, MonotonicNs()), cost_ns) || captures_->Forbid();
}

void DeviceTracker::NoLongerFarAhead() {
  is_far_ahead_ = false;
  UpdateWaits();
}

void DeviceTracker::Start(Ticket* ticket, bool may_time) {
  const std::lock_guard lock(mutex_);
  if (ticket->epoch != epoch_) return;
  last_submit_ns_ = MonotonicNs();  // it may have waited
  StartLocked(ticket, Find(ticket->stream), may_time);
}

[[gnu::always_inline]] inline void DeviceTracker::StartLocked(Ticket* ticket, StreamState& stream, bool may_time) {
  // A thread that launches on the stream at the same time could come before the stop event and be counted behind it.
  const bool may_be_timed = may_time && stream.admitted == 1 && ticket->stream.thread == 0 &&
                            vendor_->next_stamp != nullptr && timer_.IsUsable();
  // What is not known is told from what else is in its batch: so it is the last of many kinds, and the first of others.
  const bool is_first_of_batch = !ticket->is_known && ticket->key != 0 && !stream.open_mix.HasRoom();
  if (!may_be_timed && !is_first_of_batch && (stream.is_anchored || !IsStreamIdle(stream))) return;
  UnlockToMarkStart(ticket, stream, may_be_timed, is_first_of_batch);
}

[[gnu::noinline]] void DeviceTracker::UnlockToMarkStart(Ticket* ticket, StreamState& stream, bool may_be_timed,
                                                        bool is_first_of_batch) {
  if (ticket->epoch != epoch_ || captures_->Forbid()) return;
  const Relock relock(this);
  Lock& lock = relock.lock;
  const bool was_idle = IsStreamIdle(stream);
  const Pin pin(this, &stream);
  if (may_be_timed) {
    const std::uint64_t now = last_submit_ns_;
    const bool is_marked = !was_idle && IsMarkerDue(ticket->window_us, stream.unmarked_ns + ticket->weight_ns,
                                                    ticket->weight_ns, now - stream.marked_at_ns);
    if (costs_.IsTimingDue(ticket->key, now, is_marked)) {
      ticket->stop = TakeMarker(lock);
      if (ticket->stop != nullptr) costs_.TimingPlanned(ticket->key, now);
    }
  }
  if (is_first_of_batch) Mark(lock, ticket->stream, 0, From::kOwnLaunch);
  if (was_idle && !stream.is_anchored && ticket->epoch == epoch_) {
    void* marker = TakeMarker(lock);
    const bool recorded = marker != nullptr && Record(lock, marker, ticket->stream);
    if (recorded && ticket->epoch == epoch_ && !stream.is_anchored) {
      stream.start = marker;
      stream.is_anchored = true;
      stream.marked_at_ns = last_submit_ns_;
      stream.recorded_ns = MonotonicNs();
    } else {
      GiveMarker(marker);
    }
  }
}

void DeviceTracker::Leave(const Ticket& ticket, bool ok, bool finished) {
  const std::lock_guard lock(mutex_);
  if (ticket.epoch != epoch_) [[unlikely]]
    return GiveMarker(ticket.stop);
  --entered_;
  if (!ok || finished || !ticket.admitted) [[unlikely]]
    return LeaveWithNothing(ticket, ok);
  StreamState& stream = StreamOf(ticket);
  if (stream.admitted > 0) --stream.admitted;  // 0: the stream was destroyed meanwhile, and this state is a new one
  ++stream.activity.launches;
  costs_.Launched(ticket.key, ticket.function, average_.AverageNs(), ticket.place);
  if (IsStreamIdle(stream)) [[unlikely]]
    BecomeBusy(&stream);
  stream.open.Add(InFlight{1, ticket.weight_ns});
  stream.unmarked_ns += ticket.weight_ns;
  stream.open_mix.Add(ticket.key);
  // relaxed: statistics; the lock keeps them in order among themselves. The rest is as it was.
  ledger_->submitted.store(++submitted_, std::memory_order_relaxed);
  ledger_->in_flight.store(++launched_, std::memory_order_relaxed);
  const bool is_due =
      IsMarkerDue(ticket.window_us, stream.unmarked_ns, ticket.weight_ns, last_submit_ns_ - stream.marked_at_ns);
  // Where nobody else may mark the stream later, this is the moment.
  if (ticket.stop != nullptr || is_due || captures_->Any() || !MayMarkElsewhere(ticket.stream)) [[unlikely]]
    UnlockToMarkEnd(ticket, stream);
}

// The first launch may take long: when it ends is when its stream has something to do.
[[gnu::noinline]] void DeviceTracker::BecomeBusy(StreamState* stream) {
  stream->progress_ns = last_submit_ns_ = MonotonicNs();
}

[[gnu::noinline]] void DeviceTracker::UnlockToMarkEnd(const Ticket& ticket, StreamState& stream) {
  const Relock relock(this);
  const bool is_timed = ticket.stop != nullptr && stream.turn == ticket.turn;
  const bool is_due =
      IsMarkerDue(ticket.window_us, stream.unmarked_ns, ticket.weight_ns, last_submit_ns_ - stream.marked_at_ns);
  if (is_timed || is_due || captures_->Any() || !MayMarkElsewhere(ticket.stream)) {
    Mark(relock.lock, ticket.stream, is_timed ? ticket.key : 0, From::kOwnLaunch);
  }
  GiveMarker(ticket.stop);  // what it was for is known by the marker behind it
}

// Of what was not admitted, has failed, or has finished already, nothing is in flight.
[[gnu::noinline]] void DeviceTracker::LeaveWithNothing(const Ticket& ticket, bool ok) {
  if (ticket.admitted) {
    StreamState& stream = StreamOf(ticket);
    if (stream.admitted > 0) --stream.admitted;  // as above
    RemoveInFlight(stream, InFlight{1, ticket.weight_ns});
    if (ok) {
      ++submitted_;
      ++completed_;
      ++stream.activity.launches;
      ++stream.activity.completions;
      costs_.Launched(ticket.key, ticket.function, average_.AverageNs(), ticket.place);
    }
    if (IsStreamIdle(stream) && stream.admitted == 0) stream.busy_since_ns = 0;
  }
  GiveMarker(ticket.stop);
  AfterSettling();
}

// What counts against the window for a launch on `key`. The other stream that has most in flight does not: it may wait
// for a peer of this process (a collective) or for this very stream. Nor do others that stand still (several
// communicators may wait for their peers at once), nor those with one launch that may run side by side. So a client has
// two windows in flight at most on streams that move.
InFlight DeviceTracker::CountedFor(const StreamKey& key, const Window& window, std::uint64_t now_ns) const {
  InFlight most;
  InFlight counted = in_flight_;
  for (const auto& [other, stream] : streams_) {
    if (other == key) continue;
    const InFlight& its = stream.in_flight;
    const bool is_still = its.launches > 0 && now_ns > stream.progress_ns + kStillNs + 2 * its.cost_ns;
    const bool is_long = its.launches == 1 && MayRunSideBySide(window, InFlight{}, its.cost_ns);
    if (is_still || is_long) {
      counted.Remove(its);
    } else if (stream.in_flight.cost_ns > most.cost_ns) {
      most = stream.in_flight;
    }
  }
  counted.Remove(most);
  return counted;
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

[[gnu::noinline]] void DeviceTracker::Keep(void* marker) {
  pool_.push_back(marker);
}

void* DeviceTracker::TakeMarker(Lock& lock) {
  if (!pool_.empty()) {
    void* marker = pool_.back();
    pool_.pop_back();
    return marker;
  }
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
bool DeviceTracker::Record(Lock& lock, void* marker, const StreamKey& key) {
  lock.unlock();
  bool is_recorded = false;
  {
    const RelaxedThread relaxed(*vendor_);
    is_recorded = vendor_->record_marker(device_, marker, key.handle);
  }
  lock.lock();
  return is_recorded;
}

std::uint64_t DeviceTracker::Close(StreamState& stream, LaunchKey timed) {
  const std::uint64_t id = next_batch_++;
  stream.batches.Push(Batch{id, stream.open, stream.open_mix, nullptr, timed});
  stream.open = InFlight{};
  stream.open_mix = LaunchMix{};
  return id;
}

std::uint64_t DeviceTracker::CloseOpen(StreamState& stream) {
  if (stream.open.launches == 0) return stream.batches.Empty() ? 0 : stream.batches.Back().id;
  return Close(stream, 0);
}

// Records a marker behind everything launched on the stream so far. The batch is closed before the lock is released for
// the call, so that a launch of another thread meanwhile is not covered by a marker that may be in front of it.
void DeviceTracker::Mark(Lock& lock, const StreamKey& key, LaunchKey timed, From from) {
  if (captures_->Forbid()) return;
  const std::uint64_t epoch = epoch_;
  StreamState& stream = Find(key);
  const Pin pin(this, &stream);
  std::optional<Captures::Elsewhere> elsewhere;
  if (from == From::kElsewhere && !elsewhere.emplace(captures_).IsAllowed()) return;
  void* marker = TakeMarker(lock);
  // Asked last, and under the lock: a blocking stream that is made from now on waits (NoteStream).
  const bool may_mark = from == From::kOwnLaunch || MayMarkElsewhere(key);
  if (marker == nullptr || epoch != epoch_ || IsStreamIdle(stream) || !may_mark) {
    GiveMarker(marker);
    return;
  }
  const std::uint64_t id = Close(stream, timed);
  stream.own_marker = kRecording;
  stream.unmarked_ns = 0;
  stream.marked_at_ns = last_submit_ns_;
  const bool is_barrier = from == From::kElsewhere && key == StreamKey{};
  marking_legacy_ += is_barrier ? 1 : 0;
  const bool recorded = Record(lock, marker, key);
  if (is_barrier && --marking_legacy_ == 0) unpinned_.notify_all();
  if (stream.pins == 1) stream.own_marker = next_batch_++;
  if (recorded && epoch == epoch_) {
    stream.recorded_ns = MonotonicNs();
    for (std::size_t i = stream.batches.Size(); i > 0; --i) {
      if (stream.batches[i - 1].id != id) continue;
      stream.batches[i - 1].marker = marker;
      return;
    }
  }
  // Not recorded, or its batch has been settled meanwhile by a synchronisation.
  GiveMarker(marker);
}

// Marks each stream that `wanted` says, in rounds: marking releases the lock.
void DeviceTracker::MarkEach(Lock& lock, bool (*wanted)(const StreamState&)) {
  std::optional<StreamKey> last;
  for (;;) {
    auto next = last ? streams_.upper_bound(*last) : streams_.begin();
    while (next != streams_.end() && !(MayMarkElsewhere(next->first) && wanted(next->second)))
      ++next;
    if (next == streams_.end()) return;
    last = next->first;
    Mark(lock, *last, 0, From::kElsewhere);
  }
}

void DeviceTracker::PollLocked(Lock& lock) {
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
      const auto& batches = next->second.batches;
      for (std::size_t i = 0; i < batches.Size(); ++i) {
        if (batches[i].marker == nullptr) continue;
        candidates[count++] = {next->first, batches[i].id, batches[i].marker, MarkerState::kPending};
        break;
      }
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
      if (IsStreamIdle(found->second) && found->second.pins == 0) found->second.own_marker = 0;
      is_any_done = true;
    }
    if (is_any_done) continue;  // the same streams again: behind a marker that is done there may be others that are
    if (is_last) break;
    last = reached;
  }
  is_polling_ = false;
  unpinned_.notify_all();
  Measure(lock);
  AfterSettling();
}

void DeviceTracker::Poll() {
  Lock lock(mutex_);
  PollLocked(lock);
}

void DeviceTracker::AfterSettling() {
  if (gone_ > 0) {
    ForgetFound();
    std::erase_if(streams_, [this](const auto& entry) {
      const bool is_over = entry.second.is_gone && IsStreamIdle(entry.second) && entry.second.pins == 0;
      gone_ -= is_over ? 1 : 0;
      return is_over;
    });
  }
  if (deadline_ns_ != 0 || deadlines_->Any()) UpdateDeadline();
  if (busy_ && entered_ == 0 && launched_ == 0) {
    busy_ = waits_ = is_far_ahead_ = false;
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
  const bool waits = (blocked_ > 0 || is_far_ahead_) && sink_->WantsWaits();
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
    const bool is_busy = !IsStreamIdle(stream) || stream.admitted > 0;
    if (is_busy && stream.busy_since_ns == 0) stream.busy_since_ns = MonotonicNs();
  }
  UpdateDeadline();
}

// relaxed: statistics; the lock keeps them in order among themselves.
void DeviceTracker::PublishLimit() {
  ledger_->window_limit.store(LaunchLimit(limit_window_, average_), std::memory_order_relaxed);
}

void DeviceTracker::Publish() {
  ledger_->in_flight.store(launched_, std::memory_order_relaxed);
  ledger_->submitted.store(submitted_, std::memory_order_relaxed);
  // release: never more than was submitted, to whoever reads it first.
  ledger_->completed.store(completed_, std::memory_order_release);
  ledger_->gpu_time_ns.store(gpu_time_.TotalNs(), std::memory_order_relaxed);
}

// ---- streams -------------------------------------------------------------------------------------------------------

void DeviceTracker::PrepareForCapture() {
  Lock lock(mutex_);
  MarkEach(lock, [](const StreamState& stream) { return !IsMarked(stream); });
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
  GiveMarker(stream.start);
  ForgetFound();
  streams_.erase(found);
  Measure(lock);
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
  if (!IsMarked(stream)) Settle(found->first, stream, next_batch_);
  stream.is_gone = true;
  ++gone_;
  AfterSettling();
}

void DeviceTracker::ForgetDevice() {
  Lock lock(mutex_);
  unpinned_.wait(lock, [this] {
    return !is_measuring_ && !is_polling_ &&
           std::all_of(streams_.begin(), streams_.end(), [](const auto& entry) { return entry.second.pins == 0; });
  });
  ForgetFound();
  streams_.clear();
  gone_ = 0;
  events_.clear();
  non_blocking_.clear();
  blocking_.clear();
  pool_.clear();
  unmeasured_.Clear();
  clock_.Forget();
  timer_.Forget();
  ++epoch_;
  completed_ += launched_;
  entered_ = launched_ = syncing_ = blocked_ = 0;
  is_far_ahead_ = false;
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

bool DeviceTracker::IsBusy() const {
  const Lock lock(mutex_);
  return busy_;
}

}  // namespace xschedd::shim
