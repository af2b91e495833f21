// DeviceTracker's part of launches that are not as most are: that have to wait, are marked, fail, or are the first.
#include "client-shim/core/device_launching.h"

#include <algorithm>

#include "client-shim/core/stream_order.h"

namespace xschedd::shim {

Ticket DeviceTracker::Enter(const StreamKey& key, LaunchKey launch, LaunchKey function) {
  const std::lock_guard lock(mutex_);
  Ticket ticket;
  ticket.stream = key;
  ticket.key = launch;
  ticket.function = function;
  EnterLocked(&ticket, MonotonicNs());
  return ticket;
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

// Where there is room beside everything, the streams need not be looked at; here there is none.
[[gnu::noinline]] bool DeviceTracker::HasRoomBeside(const Ticket& ticket, const StreamState& stream,
                                                    const Window& window, std::uint64_t cost_ns) const {
  return MayRunSideBySide(window, stream.in_flight, cost_ns) ||
         HasRoom(window, CountedFor(ticket.stream, window, MonotonicNs()), cost_ns) || captures_->Forbid();
}

void DeviceTracker::HostNoLongerAhead() {
  is_host_ahead_ = false;
  UpdateWaits();
}

void DeviceTracker::Start(Ticket* ticket, bool may_time) {
  const std::lock_guard lock(mutex_);
  if (ticket->epoch != epoch_) return;
  last_submit_ns_ = MonotonicNs();  // it may have waited
  StartLocked(ticket, Find(ticket->stream), may_time);
}

[[gnu::noinline]] void DeviceTracker::UnlockToMarkStart(Ticket* ticket, StreamState& stream, bool may_be_timed,
                                                        bool is_first_of_batch) {
  if (ticket->epoch != epoch_ || captures_->Forbid()) return;
  Relock relock(this);
  Lock& lock = relock.lock;
  const bool was_idle = stream.work.IsIdle();
  const Pin pin(this, &stream);
  if (may_be_timed) {
    const std::uint64_t now = last_submit_ns_;
    const bool is_marked = !was_idle && IsMarkerDue(ticket->window_us, stream.work.UnmarkedNs() + ticket->weight_ns,
                                                    ticket->weight_ns, now - stream.marked_at_ns);
    if (times_.Costs().IsTimingDue(ticket->key, now, is_marked)) {
      ticket->stop = UnlockToTakeMarker(lock);
      if (ticket->stop != nullptr) times_.Costs().ChosenForTiming(ticket->key, now);
    }
  }
  if (is_first_of_batch) UnlockToMark(lock, ticket->stream, 0, In::kOwnLaunch);
  if (ticket->epoch == epoch_ && stream.work.From() != TimedFrom::kMarker) UnlockToAnchor(lock, *ticket, stream);
}

// So that the time of what is launched now can be measured, if it has to be.
void DeviceTracker::UnlockToAnchor(Lock& lock, const Ticket& ticket, StreamState& stream) {
  const bool is_by_cost = IsSettled(ticket) && ticket.stop == nullptr;
  if (!stream.work.IsIdle()) {
    // What counts by its cost ends here, unless a marker is behind some of it already.
    if (stream.work.From() == TimedFrom::kCost && !is_by_cost && stream.work.OldestMarked() == nullptr)
      UnlockToMark(lock, ticket.stream, 0, In::kOwnLaunch);
    return;
  }
  const bool is_due = stream.left_out >= kStartsLeftOut || last_submit_ns_ - stream.started_ns >= kStartRestNs;
  if (is_by_cost && !is_due) {
    ++stream.left_out;
    stream.work.TimeFrom(TimedFrom::kCost);
    return;
  }
  if (stream.work.From() == TimedFrom::kCost && stream.admitted > 1) {
    stream.work.TimeFrom(TimedFrom::kNowhere);  // another thread's launch may come before a start marker or behind it
    return;
  }
  void* marker = UnlockToTakeMarker(lock);
  const bool recorded = marker != nullptr && UnlockToRecord(lock, marker, ticket.stream);
  if (recorded && ticket.epoch == epoch_ && stream.work.From() == TimedFrom::kNowhere) {
    stream.work.TimeFrom(TimedFrom::kMarker, marker);
    stream.marked_at_ns = stream.started_ns = last_submit_ns_;
    stream.left_out = 0;
    stream.recorded_ns = MonotonicNs();
  } else {
    markers_.Give(marker);
  }
}

// The first launch may take long: when it ends is when its stream has something to do.
[[gnu::noinline]] void DeviceTracker::BecomeBusy(StreamState* stream) {
  stream->progress_ns = last_submit_ns_ = MonotonicNs();
}

[[gnu::noinline]] void DeviceTracker::UnlockToMarkEnd(const Ticket& ticket, const StreamState& stream, bool is_due) {
  Relock relock(this);
  const bool is_timed = ticket.stop != nullptr && stream.turn == ticket.turn;
  if (is_timed || is_due) UnlockToMark(relock.lock, ticket.stream, is_timed ? ticket.key : 0, In::kOwnLaunch);
  markers_.Give(ticket.stop);  // what it was for is known by the marker behind it
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
      times_.Costs().Launched(ticket.key, ticket.function, times_.Average().AverageNs(), ticket.place);
    }
    if (stream.work.IsIdle() && stream.admitted == 0) stream.busy_since_ns = 0;
  }
  markers_.Give(ticket.stop);
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
    const bool is_still = its.launches > 0 && now_ns > stream.progress_ns + kStreamStillNs + 2 * its.cost_ns;
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

}  // namespace xschedd::shim
