// What a client has submitted to one device while tracked, and how much of it is known to have finished: lock, order
// and reports. Each of its parts is a class:
//
//   device_launch.h    one launch, from entering to leaving     stream_work.h     what is unsettled on one stream
//   tracked_streams.h  the streams                              admission.h       who may launch now
//   stream_accounts.h  launches that need not come here
//   marker_pool.h      markers                                  device_times.h    what work took and costs
//   measuring.h        when settled work began and ended        device_reports.h  what the daemon is told
//
// Work is counted per stream, in batches. A batch is closed by a marker recorded behind it, or, without one, when a
// call begins whose success will prove that everything up to here has finished. A batch settles when its marker, or
// that of a later batch of the same stream, is done, or when such a call succeeds; so one stream proves nothing about
// another.
//
//     launches ──► open ──(marker recorded / a sync begins)──► batch ──(marker done / sync succeeded)──► completed
//                                                                                 │
//                               GPU time, costs ◄──(times of its markers)── measurement
//
// A start marker is recorded when a stream becomes busy, unless it is known what its work costs: then the work counts
// by that until something comes whose cost is not known, with a marker in front of it. Settled batches are measured in
// order: the time from one marker to the next is a span of the stream (gpu_time.h), and teaches what launches cost
// (cost_table.h). A launch may be timed by the device itself (launch_timer.h): it gets a stop event, and a marker
// behind it, because the runtime does not say of a stop event that it is done until something behind it is.
//
// Busy is reported when the first thread comes to submit (it may still have to wait at the gate: that is what the
// daemon has to know), idle when nothing is left. Where the daemon asks for it, it is also told while the host waits
// for the device: a thread is in a call that waits, or the host is far ahead.
//
// Where a marker may be recorded: inside the program's own launch on that stream, in front of it and behind it; on
// other streams only while nothing is captured (captures.h), and never on the legacy default stream of a program that
// has blocking streams. There a marker is a barrier between them: it waits for what they have, and what they get next
// waits for it. Inside a launch on the default stream that is what the launch itself is; elsewhere a correct program
// could stand still by it. So such a launch has a marker of its own, always.
//
// Thread rule: any thread. The lock is never held over a call of the runtime, nor over a wait; what is called Unlock...
// lets it go for that, and has it again when it returns. In steady state a launch allocates nothing, and has an account
// in which it is counted without the lock: whoever looks at what is counted folds the accounts first.
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
  bool is_query = false;  // the call asks, and does not wait
  StreamKey stream;
  std::uint64_t last_batch = 0;  // batches up to this one; 0: none
  std::uint64_t epoch = 0;
};

class DeviceTracker {
 public:
  // All three outlive the tracker. Once the process exits, the runtime is left alone: nothing is recorded, queried or
  // measured, and the window lets everybody in, because nothing could be waited for.
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
  // Starts counting from nothing for a new session, or, with null, drops everything. `sink` outlives its use here.
  void Reset(TrackerSink* sink);

  // ---- launches: DeviceLaunch alone enters and leaves
  // Looks at the markers for a thread that waits for room; records one where there is none to wait for. It will be back
  // after `nap_ns`: until then the agent leaves the looking to it.
  void PollForRoom(std::uint64_t nap_ns);
  // Nothing in flight has a marker, and the runtime refuses one: waiting for room would be waiting for a proof that
  // only the waiting thread may bring.
  bool LacksMarkers() const;
  // Those that sleep look again for themselves: who looked is no longer there, or who may go on has changed.
  void WakeWaiting();
  // There is no room: the host is far ahead of the device, and waits for it (admission.h).
  void NoteHostAhead();

  // ---- proofs of completion
  // Closes what is open, with a marker behind it where one may be recorded, so that its GPU time is known.
  Snapshot BeginSync(SyncScope scope, const StreamKey& stream);
  void EndSync(const Snapshot& snapshot, bool ok);
  // The same around an event: EventRecorded remembers how far the stream had come. BeginEventSync gives what `event`
  // proves; its snapshot's epoch is 0 if nothing is known.
  void EventRecorded(void* event, const StreamKey& stream);
  void EventDestroyed(void* event);
  Snapshot BeginEventSync(void* event, bool is_query = false);
  // Around a call that may wait for the device and promises nothing: what it has waited for is asked of the streams.
  // Nothing is recorded elsewhere meanwhile, or a stream that the program knows to be idle would not be: the agent's
  // marker may be reached much later, on a device that others share.
  void BeginImplicitSync();
  void EndImplicitSync(bool ok);
  // Whether the last thing on the stream is a marker of ours that was recorded in the last kFreshNs: it alone may be
  // what a query finds unfinished. One that is older is behind work of the program, which may be unfinished.
  static constexpr std::uint64_t kFreshNs = 300'000;
  bool IsFreshlyMarked(const StreamKey& stream, std::uint64_t now_ns);
  // Whether all that the program has submitted to the stream is known to have finished, but a marker of ours, of
  // whatever age, may not be reached yet: one behind an event that the program has waited for, or one that another
  // thread was recording while the program synchronised. Of the legacy default stream: the same of all streams that it
  // waits for.
  bool IsBehindOwnMarker(const StreamKey& stream);
  // Whether that may be so for any stream now or later: work is counted here, behind which one may be recorded, or a
  // marker of ours was recorded less than kMarkerIsOldNs ago, and nothing has shown yet that it is reached. The age is
  // for a stream that is never asked about again.
  static constexpr std::uint64_t kMarkerIsOldNs = 100'000'000;
  bool HasOwnMarkers(std::uint64_t now_ns);
  // That marker is behind something that nobody knows of here (a wait for an event or a value): no longer so.
  void LeaveOwnMarker(const StreamKey& stream);
  // Looks at the oldest marker of each stream.
  void Poll();

  // ---- the agent
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  // Settles what is done; records markers behind what has been quiet for a while. Returns when to look again; kNever:
  // nothing here needs looking at before something is submitted.
  std::uint64_t Tick(std::uint64_t now_ns, bool is_awaited = true);

  // ---- captures
  // Before a capture begins: marks what nobody could mark while it lasts.
  void PrepareForCapture();

  // ---- streams
  // A stream that the program has made, before it has work: whether the legacy default stream does not wait for it.
  void NoteStream(void* stream, bool non_blocking);
  // Nobody touches the stream after this returns. Waits for a thread that is recording on it.
  void ForgetStream(void* stream);
  // The calling thread ends, and its default stream with it. Calls no runtime.
  void ForgetThread(std::uint64_t thread);
  // The device is about to be reset: its streams and markers go.
  void ForgetDevice();
  // A deadline was set or taken away: what is busy is told anew.
  void DeadlinesChanged();

  std::vector<Activity> TakeActivity();
  // Known GPU time of what is in flight.
  std::uint64_t InFlightNs();
  bool IsBusy() const;
  // Streams that are known here: what each look at them costs.
  std::size_t Streams() const;
  // `see`(stream, what it has in flight, when that moved last) of each, under the lock.
  template <typename See>
  void SeeStreams(See see) {
    const Lock lock(mutex_);
    FoldAll();
    for (const auto& [key, stream] : streams_)
      see(key.handle, stream.in_flight, stream.progress_ns);
  }

 private:
  friend class DeviceLaunch;

  using Lock = std::unique_lock<std::mutex>;

  // While it lives a stream stays where it is, though the lock is released meanwhile. The lock is held at both ends.
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
  enum class In { kOwnLaunch, kElsewhere };  // the call in which a marker is recorded

  // ---- accounts (device_accounts.cc)
  // Behind a launch of `key` that was alone on the stream: what comes next there may need the device no more.
  void GrantAccount(TrackedStream* stream, LaunchKey key, LaunchKey function, std::uint64_t weight_ns);
  // What was launched by now is in the figures here: of a stream, of all.
  void Fold(const StreamKey& key) {
    if (accounts_.Granted() != 0) FoldIfGranted(key, false);
  }
  void FoldAll() {
    if (accounts_.Granted() != 0) FoldEach(false);
  }
  // And what comes next there comes here.
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
  // Whether a marker may be recorded outside of the stream's own launches now.
  bool MayMarkNow(const StreamKey& key) const { return implicit_syncs_ == 0 && streams_.MayMarkElsewhere(key); }
  std::uint64_t CloseOpen(TrackedStream& stream);
  void UnlockToMark(Lock& lock, const StreamKey& key, LaunchKey timed, In in);
  void UnlockToMarkEach(Lock& lock, bool (*wanted)(const TrackedStream&));
  // Calls visit(stream's key) for each stream of which is_wanted(key, state), in rounds: it lets the lock go.
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
  void UnlockToAsk(Lock& lock, const StreamKey& key);
  void UnlockToPoll(Lock& lock);
  void Settle(const StreamKey& key, TrackedStream& stream, std::uint64_t last_batch);
  // Follows whatever may have settled something: measures and reports it.
  void UnlockToFinishSettling(Lock& lock);
  void AfterSettling();
  void Reprice();
  // ---- waiting for room, and the agent
  // Returns when there may be more room than at `rooms`, or something else may have changed: after some milliseconds at
  // most. One thread polls; the others sleep until it has found something.
  void AwaitRoom(std::uint64_t epoch, std::uint32_t rooms);
  void UnlockToPollForRoom(Lock& lock, std::uint64_t nap_ns);
  std::uint64_t NapForRoomNs(std::uint64_t now_ns) const;
  std::uint64_t NextLookNs(std::uint64_t now_ns) const;
  std::uint64_t QuietNs() const;
  // ---- reports
  void UpdateWaits() { reports_.SetWaits(blocked_ > 0 || admission_.IsHostAhead()); }
  void UpdateDeadline();
  void WindowChanged() {
    TakeBackAll();  // what they have is room of the one before
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
  std::condition_variable unpinned_;  // a stream, or the streams as a whole: is_polling_, Measuring
  TrackedStreams streams_;
  MarkerPool markers_;
  Admission admission_;
  Measuring measuring_;
  std::unordered_map<void*, Snapshot> events_;
  std::uint64_t epoch_ = 1;  // a launch or a snapshot of another one is void
  std::uint64_t next_batch_ = 1;
  const int device_;
  std::uint32_t marking_legacy_ = 0;  // threads that record on the legacy default stream outside of a launch
  std::uint32_t entered_ = 0;         // launches that have entered and not left
  std::uint32_t syncing_ = 0;         // threads in a call that will settle
  std::uint32_t blocked_ = 0;         // threads in a call that waits, or may
  std::uint32_t implicit_syncs_ = 0;  // threads in a call that may synchronise, and does not say so
  std::uint64_t last_submit_ns_ = 0;  // when somebody last asked to submit and had not to wait
  std::uint64_t last_poll_ns_ = 0;    // while a thread synchronises
  std::uint64_t others_look_ns_ = 0;  // until then a thread that waits for the window looks
  std::uint64_t looked_at_ = 0;       // of submissions, when the agent looked last
  bool is_polling_ = false;           // one thread at a time, with the lock released
  bool is_awaited_ = false;           // when the agent looked last
};

}  // namespace xschedd::shim
