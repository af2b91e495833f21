// One launch on one device, from the moment its thread wants to submit until the call has returned. A tracker learns of
// launches only through such objects, and an object always leaves what it has entered:
//
//   made ──Enter──► entered ──Admit──► admitted ──Start──► (BeginWait) ──► the call ──Leave──► left
//      └────────────── Begin: all three, with the lock taken once ─────┘
//
// Where its stream has an account for it (stream_accounts.h), Begin and Leave take the account's lock alone; Leave
// takes the device's if the account is no longer what it was, or the launch did not do what most do.
//
//   entered    the client is busy, and the launch counts for nothing else yet
//   admitted   it counts against the window
//   left       a success is counted; a launch that was not admitted or has failed leaves no trace, nor does an object
//              that ends without Leave
//
// A launch whose tracker counts for another session by now, or whose device was reset, is void: its remaining steps do
// nothing. One whose stream was destroyed counts on the new stream of that name.
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
  // `key` is what is launched; `function`: the same with whatever grid. 0: not known. `tracker` outlives it.
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

  // Enter, Admit without force, and Start, for a launch that need not wait for its turn. `now_ns`: the time. False:
  // entered, but there is no room; the caller still has to call Admit and Start.
  bool Begin(const Window& window, bool may_time, std::uint64_t now_ns);
  void Enter(std::uint64_t now_ns);
  // Whether there is room in the window now; counts the caller in if so. `force`: whether or not.
  bool Admit(const Window& window, bool force);
  // After Admit has refused: returns when there may be room, or something else may have changed. After some
  // milliseconds at most.
  void AwaitRoom();
  // Of what was admitted: records the start marker if the stream was idle. `may_time`: the caller can launch with a
  // stop event; if the launch is to be timed, StopMarker() must be used for it.
  void Start(bool may_time);
  void* StopMarker() const { return stop_; }
  // The call may wait for what the stream has. `drains`: and proves by its success that the stream has nothing left of
  // what it had.
  void BeginWait(bool drains);
  // After the real call. `ok`: it succeeded; `finished`: and its work is done already. Records a marker if one is due.
  void Leave(bool ok, bool finished);

 private:
  using Lock = DeviceTracker::Lock;
  // For a caller that holds the mutex by another lock: one that may be released, and is held again at the end.
  struct Relock {
    explicit Relock(DeviceTracker* tracker) : lock(tracker->mutex_, std::adopt_lock) {}
    ~Relock() { lock.release(); }
    Relock(const Relock&) = delete;
    Relock& operator=(const Relock&) = delete;
    Lock lock;
  };
  enum class Stage : std::uint8_t { kLeft, kMade, kEntered, kAdmitted, kOnAccount, kMayWait, kDrains };

  // The parts, with the lock held. Functions named Unlock... may release it for a call of the runtime, and hold it
  // again when they return.
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
  // `is_due`: also for another reason than that the launch was timed.
  void UnlockToMarkEnd(const TrackedStream& stream, bool is_due);
  void BecomeBusy(TrackedStream* stream);
  void LeaveByDevice(bool ok, bool finished);
  void LeaveOtherwise(bool ok, bool finished);
  void Grant();
  void Abandon() noexcept;

  // The session has been replaced since it entered, or the device was reset.
  bool IsVoid() const { return epoch_ != tracker_->epoch_; }
  TrackedStream& State() {
    return forgets_ == tracker_->streams_.Forgets() ? *state_ : tracker_->streams_.Find(stream_);
  }
  // What it costs can be relied upon.
  bool IsSettled() const { return is_known_ && tracker_->times_.Costs().IsSettled(place_); }

  // Those without a value have one from the stage on that needs it.
  DeviceTracker* const tracker_;
  const StreamKey stream_;
  const LaunchKey key_;
  const LaunchKey function_;
  TrackedStream* state_;     // as long as `forgets_` is the streams'
  std::uint64_t epoch_;      // of the tracker, when it entered
  std::uint64_t weight_ns_;  // what it was admitted with
  union {
    std::uint64_t drained_batch_;  // with kDrains: what the call proves
    struct {
      std::uint32_t grant;
      std::uint8_t place, kind;
    } on_account_;  // with kOnAccount: where it is counted
  };
  void* stop_ = nullptr;     // the marker to launch with, if the launch is to be timed
  std::uint32_t window_us_;  // that it was admitted to
  std::uint32_t forgets_;    // of the streams, when it entered
  union {
    std::uint32_t rooms_;  // until it is admitted: of those that wait, when there was none for it
    std::uint32_t turn_;   // then: of the stream
  };
  std::uint16_t place_;  // of its kind among the costs (CostTable::Known)
  Stage stage_ = Stage::kMade;
  bool is_known_;  // what it costs
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
  turn_ = 0;  // it is not timed
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
  // Of several threads the last to come here need not be the last that looked at the clock.
  if (tracker.last_submit_ns_ < now_ns) tracker.last_submit_ns_ = now_ns;
  if (state_->submitted_ns < now_ns) state_->submitted_ns = now_ns;
  if (tracker.deadlines_->Any()) [[unlikely]]
    NewDeadline(state_);
  if (!tracker.reports_.IsBusy()) [[unlikely]]
    tracker.reports_.SetBusy();
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
  if (cost_ns == 0) cost_ns = costs.ReckonedCostNs(key_, function_, tracker.times_.Average().AverageNs());
  if (!force && !tracker.admission_.HasRoomBesidePromises(window, cost_ns) && !HasRoom(stream, window, cost_ns)) {
    rooms_ = tracker.admission_.Waiters().Rooms();
    return false;
  }
  if (tracker.admission_.EndHostAhead(window)) [[unlikely]]
    tracker.UpdateWaits();
  weight_ns_ = tracker.admission_.Admit(&stream, window, cost_ns);
  window_us_ = window.us;
  place_ = known.place;
  is_known_ = known.cost_ns != 0;
  turn_ = ++stream.turn;
  stage_ = Stage::kAdmitted;
  return true;
}

[[gnu::always_inline]] inline void DeviceLaunch::UnlockToStart(TrackedStream& stream, bool may_time) {
  // A thread that launches on the stream at the same time could come before the stop event and be counted behind it.
  const bool may_be_timed = may_time && stream.admitted == 1 && stream_.thread == 0 && tracker_->times_.MayTime();
  // What is not known is told from what else is in its batch: so it is the last of many kinds, and the first of others.
  const bool is_first_of_batch = !is_known_ && key_ != 0 && !stream.work.MayTellOneMore();
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
  tracker.TakeBack(stream_);  // it may have begun there
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
  // Where nobody else may mark the stream later, this is the moment.
  const bool is_due =
      IsMarkerDue(window_us_, stream.work.UnmarkedNs(), weight_ns_, tracker.last_submit_ns_ - stream.marked_at_ns) ||
      tracker.captures_->Any() || !tracker.streams_.MayMarkElsewhere(stream_);
  if (stop_ != nullptr || is_due) [[unlikely]]
    UnlockToMarkEnd(stream, is_due);
  if (is_known_ && key_ != 0) Grant();
}

}  // namespace xschedd::shim
