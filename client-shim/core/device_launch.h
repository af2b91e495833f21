// One launch on one device, from the moment its thread wants to submit until the call has returned. A tracker learns of
// launches only through these objects, and an object always leaves what it has entered:
//
//   made ──Enter──► entered ──Admit──► admitted ──Start──► (BeginWait) ──► the call ──Leave──► left
//      └────────────── Begin: all three, with the lock taken once ─────┘
//
// If its stream has an account (stream_accounts.h), Begin and Leave take only the account's lock. Leave takes the
// device's lock, too, if the account has lost its grant meanwhile or the launch failed or has already finished.
//
//   entered    the client is busy; the launch does not count otherwise
//   admitted   the launch counts against the window
//   left       a success is counted. A launch that was not admitted or has failed leaves no trace, nor does an object
//              that ends without Leave
//
// A launch is void if its tracker counts for another session by now, or its device was reset: its remaining steps do
// nothing. If its stream was destroyed, it counts on the new stream of that handle.
//
// Thread rule: the thread that launches. The common path is inline here, the rare one in device_launch.cc.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "client-shim/core/device_tracker.h"

namespace xschedd::shim {

class DeviceLaunch {
 public:
  // `key`: what is launched; `function`: the same, whatever its grid. 0: unknown. `tracker` outlives this object.
  // NOLINTNEXTLINE(clang-analyzer-optin.cplusplus.UninitializedObject): the stages set the rest
  DeviceLaunch(DeviceTracker* tracker, const StreamKey& stream, LaunchKey key, LaunchKey function = 0)
      : tracker_(tracker), stream_(stream), key_(key), function_(function) {}
  ~DeviceLaunch() {
    if (stage_ > Stage::kMade) [[unlikely]]
      Abandon();
  }
  DeviceLaunch(const DeviceLaunch&) = delete;
  DeviceLaunch& operator=(const DeviceLaunch&) = delete;

  DeviceTracker* Tracker() const { return tracker_; }

  // Enter, Admit without force, and Start, for a launch that need not wait at the gate. `now_ns`: the time. False: it
  // has entered, but there is no room; the caller still has to call Admit and Start.
  bool Begin(const Window& window, bool may_time, std::uint64_t now_ns);
  void Enter(std::uint64_t now_ns);
  // Admits the launch if there is room in the window, or in any case with `force`. False: there is no room.
  bool Admit(const Window& window, bool force);
  // After Admit has refused: returns when there may be room, or something else may have changed; after some
  // milliseconds at most.
  void AwaitRoom();
  // After Admit: records a start marker if one is needed. `may_time`: the caller can launch with a stop event. If
  // StopMarker() is not null afterwards, it must.
  void Start(bool may_time);
  void* StopMarker() const { return stop_; }
  // The call may wait for the work of the stream. `drains`: its success proves that all that work has finished.
  void BeginWait(bool drains);
  // After the real call. `ok`: it succeeded; `finished`: its work is already done. Records a marker if one is due.
  void Leave(bool ok, bool finished);

 private:
  using Lock = DeviceTracker::Lock;
  // A lock that may be released in between, for a caller that holds the mutex by a lock_guard.
  struct Relock {
    explicit Relock(DeviceTracker* tracker) : lock(tracker->mutex_, std::adopt_lock) {}
    ~Relock() { lock.release(); }
    Relock(const Relock&) = delete;
    Relock& operator=(const Relock&) = delete;
    Lock lock;
  };
  // Where a launch on an account is counted.
  struct OnAccount {
    std::uint32_t grant;
    std::uint8_t place, kind;
  };
  enum class Stage : std::uint8_t { kLeft, kMade, kEntered, kAdmitted, kOnAccount, kMayWait, kDrains };

  // The first two take only the account's lock; LeaveByDevice and LeaveOtherwise take the device's lock; the rest are
  // called with it. Functions named Unlock... may release it for a call of the runtime; they return with it held.
  bool BeginOnAccount(const Window& window, bool may_time, std::uint64_t now_ns);
  bool LeaveAccount(bool ok, bool finished);
  void EnterLocked(std::uint64_t now_ns);
  bool AdmitLocked(TrackedStream& stream, const Window& window, bool force);
  bool HasRoom(const TrackedStream& stream, const Window& window, std::uint64_t cost_ns) const;
  void UnlockToStart(TrackedStream& stream, bool may_time);
  void UnlockToLeave(bool was_admitted, bool ok, bool finished);
  void LeaveWithNothing(bool was_admitted, bool ok);
  void NewDeadline(TrackedStream* stream);
  void UnlockToMarkStart(TrackedStream& stream, bool may_be_timed, bool is_first_of_batch);
  void UnlockToAnchor(Lock& lock, TrackedStream& stream);
  // `is_due`: a marker is due even if the launch was not timed.
  void UnlockToMarkEnd(const TrackedStream& stream, bool is_due);
  void BecomeBusy(TrackedStream* stream);
  void LeaveByDevice(bool ok, bool finished);
  void LeaveOtherwise(bool ok, bool finished);
  void Grant();
  void Abandon() noexcept;

  // Since it entered, the session was replaced or the device was reset.
  bool IsVoid() const { return epoch_ != tracker_->epoch_; }
  TrackedStream& State() {
    return forgets_ == tracker_->streams_.Forgets() ? *state_ : tracker_->streams_.Find(stream_);
  }
  // Its cost is reliable.
  bool IsSettled() const { return is_known_ && tracker_->times_.Costs().IsSettled(place_); }

  // Members without an initialiser are set by the first stage that needs them.
  DeviceTracker* const tracker_;
  const StreamKey stream_;
  const LaunchKey key_;
  const LaunchKey function_;
  TrackedStream* state_;     // valid while the streams' Forgets() is `forgets_`
  std::uint64_t epoch_;      // of the tracker, when it entered
  std::uint64_t weight_ns_;  // what it counts against the window
  union {
    std::uint64_t drained_batch_;  // with kDrains: the last batch that the call proves to have finished
    OnAccount on_account_;         // with kOnAccount
  };
  void* stop_ = nullptr;     // the marker to launch with, if the launch is to be timed
  std::uint32_t window_us_;  // of the window that it was admitted to
  std::uint32_t forgets_;    // of the streams, when it entered
  union {
    std::uint32_t room_generation_;   // until it is admitted: RoomWaiters::Generation() when it was refused
    std::uint32_t admission_number_;  // then: TrackedStream::admissions when it was admitted
  };
  std::uint16_t place_;  // of its kind in the cost table (CostTable::Known)
  Stage stage_ = Stage::kMade;
  bool is_known_;  // its cost is known
};

// ---- on an account

[[gnu::always_inline]] inline bool DeviceLaunch::BeginOnAccount(const Window& window, bool may_time,
                                                                std::uint64_t now_ns) {
  StreamAccounts& accounts = tracker_->accounts_;
  const std::uintptr_t owner = StreamAccounts::OwnerOf(stream_);
  const std::size_t place = accounts.Of(owner);
  if (place == StreamAccounts::kAccounts || !accounts.AreOpen()) return false;
  StreamAccount::Begun begun;
  if (!accounts.At(place).Begin(owner, window, key_, function_, may_time, now_ns, &begun)) return false;
  state_ = begun.stream;
  epoch_ = begun.epoch;
  weight_ns_ = begun.weight_ns;
  window_us_ = window.us;
  forgets_ = begun.forgets;
  admission_number_ = 0;  // it is not timed
  place_ = begun.place;
  is_known_ = true;
  on_account_ = {begun.grant, static_cast<std::uint8_t>(place), begun.kind};
  stage_ = Stage::kOnAccount;
  return true;
}

[[gnu::always_inline]] inline bool DeviceLaunch::LeaveAccount(bool ok, bool finished) {
  StreamAccounts& accounts = tracker_->accounts_;
  return ok && !finished && accounts.AreOpen() &&
         accounts.At(on_account_.place).Leave(on_account_.grant, on_account_.kind);
}

// ---- entered

[[gnu::always_inline]] inline bool DeviceLaunch::Begin(const Window& window, bool may_time, std::uint64_t now_ns) {
  if (BeginOnAccount(window, may_time, now_ns)) return true;
  const std::lock_guard lock(tracker_->mutex_);
  EnterLocked(now_ns);
  if (!AdmitLocked(*state_, window, false)) return false;
  UnlockToStart(*state_, may_time);
  return true;
}

[[gnu::always_inline]] inline void DeviceLaunch::EnterLocked(std::uint64_t now_ns) {
  DeviceTracker& tracker = *tracker_;
  state_ = &tracker.streams_.Find(stream_);
  epoch_ = tracker.epoch_;
  forgets_ = tracker.streams_.Forgets();
  ++tracker.entered_;
  stage_ = Stage::kEntered;
  // Threads do not come here in the order in which they read the clock.
  if (tracker.last_submit_ns_ < now_ns) tracker.last_submit_ns_ = now_ns;
  if (state_->submitted_ns < now_ns) state_->submitted_ns = now_ns;
  if (tracker.deadlines_->Any()) [[unlikely]]
    NewDeadline(state_);
  if (!tracker.reports_.IsBusy()) [[unlikely]]
    tracker.BeginWork(now_ns);
}

// ---- admitted

[[gnu::always_inline]] inline bool DeviceLaunch::AdmitLocked(TrackedStream& stream, const Window& window, bool force) {
  DeviceTracker& tracker = *tracker_;
  CostTable& costs = tracker.times_.Costs();
  tracker.TakeBack(stream_);
  if (window.us != 0 && costs.TakeJump()) [[unlikely]]
    tracker.Reprice();
  if (tracker.admission_.SetWindow(window)) [[unlikely]]
    tracker.WindowChanged();
  const CostTable::Known known = costs.CostOf(key_);
  std::uint64_t cost_ns = known.cost_ns;
  if (cost_ns == 0) cost_ns = costs.EstimatedCostNs(key_, function_, tracker.times_.Average().AverageNs());
  if (!force && !tracker.admission_.HasRoomBesidePromises(window, cost_ns) && !HasRoom(stream, window, cost_ns)) {
    room_generation_ = tracker.admission_.Waiters().Generation();
    return false;
  }
  if (tracker.admission_.EndHostAhead(window)) [[unlikely]]
    tracker.UpdateWaits();
  weight_ns_ = tracker.admission_.Admit(&stream, window, cost_ns);
  window_us_ = window.us;
  place_ = known.place;
  is_known_ = known.cost_ns != 0;
  admission_number_ = ++stream.admissions;
  stage_ = Stage::kAdmitted;
  return true;
}

[[gnu::always_inline]] inline void DeviceLaunch::UnlockToStart(TrackedStream& stream, bool may_time) {
  // A launch of another thread at the same time could come in front of the stop event, but be counted behind it.
  const bool may_be_timed = may_time && stream.admitted == 1 && stream_.thread == 0 && tracker_->times_.MayTime();
  // An unknown cost is computed from the span of its batch, so the batch must not have too many kinds: begin another.
  const bool is_first_of_batch = !is_known_ && key_ != 0 && !stream.work.HasRoomForAnotherKind();
  const bool has_start = stream.work.From() == TimedFrom::kMarker ||
                         (stream.work.From() == TimedFrom::kCost && IsSettled()) ||
                         (stream.work.From() == TimedFrom::kNowhere && !stream.work.IsIdle());
  if (!may_be_timed && !is_first_of_batch && has_start) return;
  UnlockToMarkStart(stream, may_be_timed, is_first_of_batch);
}

// ---- left

[[gnu::always_inline]] inline void DeviceLaunch::Leave(bool ok, bool finished) {
  if (stage_ == Stage::kOnAccount && LeaveAccount(ok, finished)) [[likely]] {
    stage_ = Stage::kLeft;
  } else {
    LeaveByDevice(ok, finished);
  }
}

[[gnu::always_inline]] inline void DeviceLaunch::UnlockToLeave(bool was_admitted, bool ok, bool finished) {
  DeviceTracker& tracker = *tracker_;
  if (IsVoid()) [[unlikely]]
    return tracker.markers_.Give(stop_);
  tracker.TakeBack(stream_);  // it may have begun on the account
  --tracker.entered_;
  if (!ok || finished || !was_admitted) [[unlikely]]
    return LeaveWithNothing(was_admitted, ok);
  TrackedStream& stream = State();
  Admission::Leave(&stream);
  ++stream.activity.launches;
  tracker.times_.Costs().Launched(key_, function_, tracker.times_.Average().AverageNs(), place_);
  if (stream.work.IsIdle()) [[unlikely]]
    BecomeBusy(&stream);
  stream.work.Launched(key_, weight_ns_);
  tracker.reports_.AddLaunched();
  // Where markers may be recorded only inside the stream's own launches, one is due behind each.
  const bool is_due =
      IsMarkerDue(window_us_, stream.work.UnmarkedNs(), weight_ns_, tracker.last_submit_ns_ - stream.marked_at_ns) ||
      tracker.captures_->Any() || !tracker.streams_.MayMarkElsewhere(stream_);
  if (stop_ != nullptr || is_due) [[unlikely]]
    UnlockToMarkEnd(stream, is_due);
  if (is_known_ && key_ != 0) Grant();
}

}  // namespace xschedd::shim
