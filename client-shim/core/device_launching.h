// DeviceTracker's part of every launch (tracked_launch.cc), to be inlined there: what most launches need and no more.
// What is rare is in device_launching.cc.
#pragma once

#include "client-shim/core/device_tracker.h"
#include "common/clock.h"

namespace xschedd::shim {

[[gnu::always_inline]] inline bool DeviceTracker::Begin(Ticket* ticket, const Window& window, bool may_time,
                                                        std::uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  StreamState& stream = EnterLocked(ticket, now_ns);
  if (!AdmitLocked(ticket, stream, window, false)) return false;
  StartLocked(ticket, stream, may_time);
  return true;
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

[[gnu::always_inline]] inline bool DeviceTracker::AdmitLocked(Ticket* ticket, StreamState& stream, const Window& window,
                                                              bool force) {
  if (window.us != 0 && times_.Costs().TakeJump()) [[unlikely]]
    Reprice();
  if (limit_window_.us != window.us || limit_window_.floor != window.floor) [[unlikely]] {
    limit_window_ = window;
    PublishLimit();
  }
  const CostTable::Known known = times_.Costs().CostOf(ticket->key);
  std::uint64_t cost_ns = known.cost_ns;
  if (cost_ns == 0)
    cost_ns = times_.Costs().ReckonedCostNs(ticket->key, ticket->function, times_.Average().AverageNs());
  if (!force && !HasRoom(window, in_flight_, cost_ns) && !HasRoomBeside(*ticket, stream, window, cost_ns)) {
    ticket->rooms = room_waiters_.Rooms();
    return false;
  }
  if (is_host_ahead_ && in_flight_.cost_ns < std::uint64_t{window.us} * 1000 / 2) [[unlikely]]
    HostNoLongerAhead();
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

[[gnu::always_inline]] inline void DeviceTracker::StartLocked(Ticket* ticket, StreamState& stream, bool may_time) {
  // A thread that launches on the stream at the same time could come before the stop event and be counted behind it.
  const bool may_be_timed = may_time && stream.admitted == 1 && ticket->stream.thread == 0 && times_.MayTime();
  // What is not known is told from what else is in its batch: so it is the last of many kinds, and the first of others.
  const bool is_first_of_batch = !ticket->is_known && ticket->key != 0 && !stream.work.MayTellOneMore();
  const bool has_start = stream.work.From() == TimedFrom::kMarker ||
                         (stream.work.From() == TimedFrom::kCost && IsSettled(*ticket)) ||
                         (stream.work.From() == TimedFrom::kNowhere && !stream.work.IsIdle());
  if (!may_be_timed && !is_first_of_batch && has_start) return;
  UnlockToMarkStart(ticket, stream, may_be_timed, is_first_of_batch);
}

[[gnu::always_inline]] inline void DeviceTracker::Leave(const Ticket& ticket, bool ok, bool finished) {
  const std::lock_guard lock(mutex_);
  if (ticket.epoch != epoch_) [[unlikely]]
    return markers_.Give(ticket.stop);
  --entered_;
  if (!ok || finished || !ticket.admitted) [[unlikely]]
    return LeaveWithNothing(ticket, ok);
  StreamState& stream = StreamOf(ticket);
  if (stream.admitted > 0) --stream.admitted;  // 0: the stream was destroyed meanwhile, and this state is a new one
  ++stream.activity.launches;
  times_.Costs().Launched(ticket.key, ticket.function, times_.Average().AverageNs(), ticket.place);
  if (stream.work.IsIdle()) [[unlikely]]
    BecomeBusy(&stream);
  stream.work.Launched(ticket.key, ticket.weight_ns);
  // relaxed: statistics; the lock keeps them in order among themselves. The rest is as it was.
  ledger_->submitted.store(++submitted_, std::memory_order_relaxed);
  ledger_->in_flight.store(++launched_, std::memory_order_relaxed);
  // Where nobody else may mark the stream later, this is the moment.
  const bool is_due = IsMarkerDue(ticket.window_us, stream.work.UnmarkedNs(), ticket.weight_ns,
                                  last_submit_ns_ - stream.marked_at_ns) ||
                      captures_->Any() || !MayMarkElsewhere(ticket.stream);
  if (ticket.stop != nullptr || is_due) [[unlikely]]
    UnlockToMarkEnd(ticket, stream, is_due);
}

}  // namespace xschedd::shim
