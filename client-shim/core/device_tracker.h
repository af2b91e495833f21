// Tracks what a client has submitted to one device while tracked, and how much of it is known to have finished. This
// class has the lock, the order of steps and the reports. Each of its parts is a class:
//
//   device_launch.h    one launch, from entering to leaving     stream_work.h     unsettled work of one stream
//   tracked_streams.h  the streams                              admission.h       which launch may proceed
//   stream_accounts.h  launches counted without this lock
//   marker_pool.h      markers                                  device_times.h    GPU time and costs of work
//   measuring.h        when settled work began and ended        device_reports.h  reports to the daemon
//
// Work is counted per stream, in batches. A batch is closed by a marker recorded behind it or, without one, when a call
// begins whose success will prove that everything before it has finished. A batch settles when its marker, or that of a
// later batch of the same stream, is done, or when such a call succeeds. One stream proves nothing about another.
//
//     launches ──► open ──(marker recorded / a sync begins)──► batch ──(marker done / sync succeeded)──► completed
//                                                                                 │
//                               GPU time, costs ◄──(times of its markers)── measurement
//
// A start marker is recorded when a stream becomes busy, unless the cost of its work is known. Then the work is counted
// by its cost, until a launch of unknown cost comes and gets a marker in front of it. Settled batches are measured in
// order: the time from one marker to the next is a span of the stream (gpu_time.h), and shows what launches cost
// (cost_table.h). A launch may be timed by the device itself (launch_timer.h). It gets a stop event and a marker behind
// it, because the runtime reports a stop event as done only once something behind it is.
//
// Busy is reported when the first thread comes to submit. It may still have to wait at the gate, and the daemon has to
// know that. Idle is reported when nothing is left. If the daemon asks for it, the tracker also reports when the host
// waits for the device: a thread is in a call that waits, or the host is far ahead.
//
// Where a marker may be recorded: inside the program's own launch on that stream, in front of it and behind it. On
// other streams only while nothing is captured (captures.h), and never on the legacy default stream of a program that
// has blocking streams. There a marker is a barrier: it waits for the work of these streams, and their later work waits
// for it. A launch on the default stream is such a barrier anyway, so a marker inside it changes nothing; anywhere else
// it could deadlock a correct program. Therefore each launch on that stream gets a marker.
//
// Thread rule: any thread. The lock is never held during a call of the runtime or a wait. Functions named Unlock...
// release it for that, and hold it again when they return. In steady state a launch allocates nothing and is counted in
// an account, without the lock; whoever reads the counts folds the accounts first.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "client-shim/core/admission.h"
#include "client-shim/core/captures.h"
#include "client-shim/core/deadlines.h"
#include "client-shim/core/device_reports.h"
#include "client-shim/core/device_times.h"
#include "client-shim/core/interface.h"
#include "client-shim/core/marker_pool.h"
#include "client-shim/core/measuring.h"
#include "client-shim/core/stream_accounts.h"
#include "client-shim/core/tracked_streams.h"
#include "client-shim/core/window.h"

namespace xschedd::shim {

// What a call that proves completion covers.
struct Snapshot {
  SyncScope scope = SyncScope::kDevice;
  bool is_query = false;  // the call does not wait
  StreamKey stream;
  std::uint64_t last_batch = 0;  // batches up to this one; 0: none
  std::uint64_t epoch = 0;
};

class DeviceTracker {
 public:
  // All three outlive the tracker. Once the process exits, the runtime is not called: nothing is recorded, queried or
  // measured, and every launch is admitted, because no wait would end.
  DeviceTracker(int device, const Vendor* vendor, Captures* captures, const Deadlines* deadlines)
      : accounts_(captures, deadlines),
        times_(vendor),
        vendor_(vendor),
        captures_(captures),
        deadlines_(deadlines),
        markers_(device, vendor),
        admission_(&streams_),
        measuring_(vendor, captures, &markers_, &streams_, &times_),
        device_(device) {}

  // ---- session
  // Starts counting from zero for a new session or, with null, drops everything. `sink` outlives its use here.
  void Reset(TrackerSink* sink);

  // ---- threads that wait for room; launches enter and leave by DeviceLaunch
  // Polls the markers for a thread that waits, and records one on each busy stream that has none. The thread comes
  // again after `nap_ns`; until then the agent does not poll.
  void PollForRoom(std::uint64_t nap_ns);
  // Nothing in flight has a marker, and the runtime refuses to record one: nothing would end a wait for room.
  bool LacksMarkers() const;
  // Sleeping threads check again: the one that polled has left, or the gate has changed.
  void WakeWaiting();
  // A launch finds no room: the host is far ahead of the device, and waits for it (admission.h).
  void NoteHostAhead();

  // ---- proofs of completion
  // Around a call that proves completion. BeginSync closes open batches, with a marker where one may be recorded, so
  // that their GPU time is measured.
  Snapshot BeginSync(SyncScope scope, const StreamKey& stream);
  void EndSync(const Snapshot& snapshot, bool ok);
  // The same for an event. EventRecorded remembers how far the stream had come. BeginEventSync returns what `event`
  // proves; the epoch is 0 if nothing is known.
  void EventRecorded(void* event, const StreamKey& stream);
  void EventDestroyed(void* event);
  Snapshot BeginEventSync(void* event, bool is_query = false);
  // Around a call that may wait for the device, but proves nothing by its success: at its end the streams are queried.
  // Meanwhile no marker is recorded elsewhere: it would make a stream busy that the program knows to be idle, and on a
  // shared device it may be reached much later.
  void BeginImplicitSync();
  void EndImplicitSync(bool ok);
  // Whether the last thing on the stream is a marker of ours that was recorded in the last kFreshNs. Then a query may
  // find nothing unfinished but this marker. Behind an older one, the program's work itself may be unfinished.
  static constexpr std::uint64_t kFreshNs = 300'000;
  bool IsFreshlyMarked(const StreamKey& stream, std::uint64_t now_ns);
  // Whether all that the program has submitted to the stream is known to have finished, but a marker of ours, of any
  // age, may not be reached yet: one behind an event that the program has waited for, or one that another thread was
  // recording while the program synchronised. For the legacy default stream, all streams that it waits for count.
  bool IsBehindOwnMarker(const StreamKey& stream);
  // Whether that may be so for any stream, now or later: there is counted work, behind which a marker may be recorded,
  // or a marker of ours was recorded less than kMarkerIsOldNs ago and is not known to be reached. Older ones do not
  // count, because a stream may never be queried again.
  static constexpr std::uint64_t kMarkerIsOldNs = 100'000'000;
  bool HasOwnMarkers(std::uint64_t now_ns);
  // Our marker on the stream waits for something unknown here (an event or a value): IsBehindOwnMarker no longer counts
  // it.
  void ForgetOwnMarker(const StreamKey& stream);
  // Queries the oldest marker of each stream.
  void Poll();

  // ---- the agent
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  // Settles what is done, and records markers on streams that have been quiet for a while. `is_awaited`: another client
  // waits for this one (abi::kAwaited). Returns when to call again; kNever: not before something is submitted.
  std::uint64_t Tick(std::uint64_t now_ns, bool is_awaited = true);

  // ---- captures
  // Before a capture begins: records the markers that cannot be recorded while it lasts.
  void PrepareForCapture();

  // ---- streams
  // The program has made a stream, which has no work yet. `is_non_blocking`: the legacy default stream does not wait
  // for it.
  void NoteStream(void* stream, bool is_non_blocking);
  // Nobody touches the stream after this returns. Waits for a thread that is recording on it.
  void ForgetStream(void* stream);
  // The calling thread ends, and its default stream with it. Calls no runtime.
  void ForgetThread(std::uint64_t thread);
  // The device is about to be reset: its streams and markers go.
  void ForgetDevice();
  // A deadline was set or removed: reports the deadline of what is busy.
  void DeadlinesChanged();

  std::vector<Activity> TakeActivity();
  // Known GPU time of what is in flight.
  std::uint64_t InFlightNs();
  bool IsBusy() const;
  // How many streams are known here.
  std::size_t Streams() const;
  // Calls visit(handle, InFlight, progress_ns) for each stream, under the lock.
  template <typename Visit>
  void ForEachStream(Visit visit) {
    const Lock lock(mutex_);
    FoldAll();
    for (const auto& [key, stream] : streams_)
      visit(key.handle, stream.in_flight, stream.progress_ns);
  }

 private:
  friend class DeviceLaunch;

  using Lock = std::unique_lock<std::mutex>;

  // While it lives, the stream is not forgotten, even while the lock is released. Made and destroyed under the lock.
  class Pin {
   public:
    Pin(DeviceTracker* tracker, TrackedStream* stream) : tracker_(tracker), stream_(stream) { ++stream_->pins; }
    ~Pin() {
      if (--stream_->pins == 0) tracker_->unpinned_.notify_all();
    }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;

   private:
    DeviceTracker* const tracker_;
    TrackedStream* const stream_;
  };
  enum class In { kOwnLaunch, kElsewhere };  // where a marker is recorded: inside a launch on its stream or not

  // ---- accounts (device_accounts.cc)
  // After a launch of `key`: lets the next ones on the stream be counted in an account, if the conditions hold.
  void GrantAccount(TrackedStream* stream, LaunchKey key, LaunchKey function, std::uint64_t weight_ns);
  // Adds what accounts have counted to the figures here: of one stream, of all.
  void Fold(const StreamKey& key) {
    if (accounts_.Granted() != 0) FoldIfGranted(key, false);
  }
  void FoldAll() {
    if (accounts_.Granted() != 0) FoldEach(false);
  }
  // The same, and ends their grants.
  void TakeBack(const StreamKey& key) {
    if (accounts_.Granted() != 0) FoldIfGranted(key, true);
  }
  void TakeBackAll() {
    if (accounts_.Granted() != 0) FoldEach(true);
  }
  void FoldIfGranted(const StreamKey& key, bool takes_back);
  void FoldEach(bool takes_back);
  void FoldPlace(std::size_t place, bool takes_back);

  // ---- markers
  // Whether a marker may be recorded now outside of the stream's own launches.
  bool MayMarkNow(const StreamKey& key) const { return implicit_syncs_ == 0 && streams_.MayMarkElsewhere(key); }
  std::uint64_t CloseOpen(TrackedStream& stream);
  // `timed`: the kind of the last launch if that was timed, with its stop event `stop`; else 0. True: `stop` is the
  // batch's now.
  bool UnlockToMark(Lock& lock, const StreamKey& key, LaunchKey timed, In in, void* stop = nullptr);
  void UnlockToMarkEach(Lock& lock, bool (*is_wanted)(const TrackedStream&));
  // Calls visit(key), which may release the lock, for each stream for which is_wanted(key, stream).
  template <typename IsWanted, typename Visit>
  void UnlockForEach(IsWanted is_wanted, Visit visit) {
    std::optional<StreamKey> last;
    for (;;) {
      auto next = streams_.After(last);
      while (next != streams_.end() && !is_wanted(next->first, next->second))
        ++next;
      if (next == streams_.end()) return;
      last = next->first;
      visit(*last);
    }
  }
  // ---- settling
  void UnlockToQueryStream(Lock& lock, const StreamKey& key);
  void UnlockToPoll(Lock& lock);
  void Settle(const StreamKey& key, TrackedStream& stream, std::uint64_t last_batch);
  // After calls of Settle: measures what has settled, and reports it.
  void UnlockToFinishSettling(Lock& lock);
  void AfterSettling();
  void Reprice();
  // ---- waiting for room, and the agent
  // Returns when there may be more room than at that generation, or something else may have changed; after some
  // milliseconds at most. One thread polls; the others sleep until it has found something.
  void AwaitRoom(std::uint64_t epoch, std::uint32_t room_generation);
  void UnlockToPollForRoom(Lock& lock, std::uint64_t nap_ns);
  std::uint64_t NapForRoomNs(std::uint64_t now_ns) const;
  std::uint64_t NextTickNs(std::uint64_t now_ns, bool is_used);
  std::uint64_t QuietNs() const;
  // The first work after none: reports it, and remembers who found the end before.
  void BeginWork(std::uint64_t now_ns);
  // A call of the program has ended that shows what has finished.
  void NoteShown();
  // The program's own calls show when its work has ended, as far as is known.
  bool AreEndsShown() const { return quiet_ends_ == 0; }
  // Whether the agent need not look soon.
  bool IsLazy(std::uint64_t now_ns, bool is_steady) const;
  // ---- reports
  void UpdateWaits() {
    reports_.SetWaits(blocked_ > 0 || admission_.IsHostAhead(), [this] { FoldAll(); });
  }
  void UpdateDeadline();
  void WindowChanged() {
    TakeBackAll();  // their room is of the previous window
    PublishLimit();
  }
  void PublishLimit() { reports_.PublishLimit(LaunchLimit(admission_.LastWindow(), times_.Average())); }

  StreamAccounts accounts_;
  DeviceTimes times_;
  DeviceReports reports_;
  const Vendor* const vendor_;
  Captures* const captures_;
  const Deadlines* const deadlines_;
  mutable std::mutex mutex_;
  std::condition_variable unpinned_;  // a pin, polling, measuring or a marking of the legacy stream has ended
  TrackedStreams streams_;
  MarkerPool markers_;
  Admission admission_;
  Measuring measuring_;
  std::unordered_map<void*, Snapshot> events_;
  std::uint64_t epoch_ = 1;  // launches and snapshots of another epoch are void
  std::uint64_t next_batch_ = 1;
  const int device_;
  std::uint32_t marking_legacy_ = 0;  // threads that record on the legacy default stream outside of a launch
  std::uint32_t entered_ = 0;         // launches that have entered and not left
  std::uint32_t syncing_ = 0;         // threads in a call that will settle
  std::uint32_t blocked_ = 0;         // threads in a call that waits, or may wait
  std::uint32_t implicit_syncs_ = 0;  // threads between BeginImplicitSync and EndImplicitSync
  std::uint64_t last_submit_ns_ = 0;  // when a launch last entered or was let through
  std::uint64_t last_poll_ns_ = 0;    // of the agent, while a thread synchronises
  std::uint64_t quiet_since_ns_ = 0;  // when the agent found that all had ended; 0: there is new work, or a call did
  std::uint64_t busy_since_ns_ = 0;   // when work began, other than after a moment
  int quiet_ends_ = 2;                // grows with each end that the agent found, falls with any other, and at first
  std::uint64_t others_poll_until_ns_ = 0;  // until then, a thread that waits for the window polls
  std::uint64_t submitted_at_tick_ = 0;     // reports_.Submitted() at the last Tick
  bool is_polling_ = false;                 // a thread is polling, with the lock released
  bool was_launching_ = false;              // at the last Tick
  bool is_awaited_ = false;                 // as of the last Tick
};

}  // namespace xschedd::shim
