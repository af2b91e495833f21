// What a client has submitted to one device while tracked, and what of it is known to have finished: lock, order and
// reports. What was launched on a stream is stream_work.h, what work took and costs is device_times.h; a launch's part
// is device_launching.h.
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
// (cost_table.h). So that a change of costs is noticed, a stream has a start marker now and then all the same
// (kStartRestNs, kStartsLeftOut). A launch may
// be timed by the device itself (launch_timer.h): it gets a stop event, and a marker behind it, because the runtime
// does not say of a stop event that it is done until something behind it is.
//
// Busy is reported when the first thread comes to submit (it may still have to wait at the gate: that is what the
// daemon has to know), idle when nothing is left. Where the daemon asks for it, it is also told while the host waits
// for the device: a thread is in a call that waits, or the host is far ahead. Reports are made under the lock, so that
// they reach the ring in order.
//
// Where a marker may be recorded: inside the program's own launch on that stream, in front of it and behind it; on
// other streams only while nothing is captured (captures.h), and never on the legacy default stream of a program that
// has blocking streams. There a marker is a barrier between them: it waits for what they have, and what they get next
// waits for it. Inside a launch on the default stream that is what the launch itself is; elsewhere a correct program
// could stand still by it. So such a launch has a marker of its own, always.
//
// Thread rule: any thread. The lock is never held over a call of the runtime, nor over a wait. In steady state nothing
// is allocated between Enter and Leave.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client-shim/core/captures.h"
#include "client-shim/core/deadlines.h"
#include "client-shim/core/device_times.h"
#include "client-shim/core/interface.h"
#include "client-shim/core/marker_clock.h"
#include "client-shim/core/marker_pool.h"
#include "client-shim/core/polling.h"
#include "client-shim/core/ring_queue.h"
#include "client-shim/core/room_waiters.h"
#include "client-shim/core/stream_work.h"
#include "client-shim/core/window.h"

namespace xschedd::shim {

// Where a tracker's reports and counters go: the ledger of the session. A test has its own.
class TrackerSink {
 public:
  virtual ~TrackerSink() = default;
  // Called in order; never blocks. `deadline_ns`: see abi::LedgerDevice.
  virtual void Report(abi::TransitionKind kind, std::uint64_t deadline_ns) = 0;
  // Where the tracker keeps in_flight, window_limit, submitted, completed and gpu_time_ns. Stays where it is.
  virtual abi::LedgerDevice& Counters() = 0;
  // Whether kWaits is to be reported now. Never blocks.
  virtual bool WantsWaits() const = 0;
};

// hipStreamPerThread, CU_STREAM_PER_THREAD: one handle for the default streams of all threads. Null and 1 are the
// legacy default stream (hip_runtime_api.h).
inline constexpr std::uintptr_t kPerThreadHandle = 2;
inline constexpr std::uintptr_t kLegacyHandle = 1;
inline bool IsDefaultStream(const void* stream) {
  return reinterpret_cast<std::uintptr_t>(stream) <= kPerThreadHandle;
}

// A stream on one device. `thread` tells the per-thread default streams apart.
struct StreamKey {
  void* handle = nullptr;
  std::uint64_t thread = 0;
  auto operator<=>(const StreamKey&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 takes it for a 0
};

// A launch from Begin or Enter to Leave. The first three say what is launched; the rest is the tracker's to set.
struct Ticket {
  StreamKey stream;
  LaunchKey key;
  LaunchKey function;       // what `key` launches, with whatever grid; 0: not known
  void* state;              // of the stream, in the tracker; as long as `forgets` is the tracker's
  std::uint64_t epoch = 0;  // of the tracker; a ticket from before a Reset is void
  std::uint64_t weight_ns;  // what it was admitted with
  void* stop = nullptr;     // from Start: the marker to launch with, if the launch is to be timed
  std::uint32_t window_us;  // that it was admitted to
  std::uint32_t forgets;    // of the tracker, when it was entered
  union {
    std::uint32_t rooms;  // until it is admitted: of the tracker, when there was none for it
    std::uint32_t turn;   // then: of the stream
  };
  std::uint16_t place;  // of its kind among the costs (CostTable::Known)
  bool admitted;
  bool is_known;  // by Admit: what the launch costs
};

// What a call that proves completion covers.
struct Snapshot {
  SyncScope scope = SyncScope::kDevice;
  StreamKey stream;
  std::uint64_t last_batch = 0;  // batches up to this one; 0: none
  std::uint64_t epoch = 0;
  bool is_query = false;  // the call asks, and does not wait
};

struct Activity {
  StreamKey stream;
  std::uint64_t launches = 0;
  std::uint64_t completions = 0;
};

class DeviceTracker {
 public:
  // All three outlive the tracker. Once the process exits, the runtime is left alone: nothing is recorded, queried or
  // measured, and the window lets everybody in, because nothing could be waited for.
  DeviceTracker(int device, const Vendor* vendor, Captures* captures, const Deadlines* deadlines)
      : times_(vendor), device_(device), vendor_(vendor), captures_(captures), deadlines_(deadlines), clock_(vendor) {}

  // ---- session
  // Starts counting from nothing for a new session, or, with null, drops everything. `sink` outlives its use here.
  void Reset(TrackerSink* sink);

  // ---- the submitting thread, in this order
  // Enter, Admit without force, and Start, with the lock taken once: for who need not wait for its turn. The ticket
  // says what is launched. `now_ns`: the time. False: entered, but there is no room; Admit and Start are still to come.
  bool Begin(Ticket* ticket, const Window& window, bool may_time, std::uint64_t now_ns);
  Ticket Enter(const StreamKey& stream, LaunchKey key, LaunchKey function = 0);
  // Whether there is room in the window now; counts the caller in if so. `force`: whether or not.
  bool Admit(Ticket* ticket, const Window& window, bool force);
  // Before the real call of an admitted ticket: records the start marker if the stream was idle. `may_time`: the caller
  // can launch with a stop event; if the launch is to be timed, ticket->stop is set and must be used for it.
  void Start(Ticket* ticket, bool may_time);
  // After the real call. `ok`: it succeeded; `finished`: and its work is done already. Records a marker if one is due.
  void Leave(const Ticket& ticket, bool ok, bool finished);
  // Returns when there may be room for a ticket that was not admitted, or something else may have changed: after some
  // milliseconds at most. One thread looks, the others sleep until it has found something.
  void AwaitRoom(const Ticket& ticket);
  // What it looks by: at the markers; records one where there is none to wait for. It will be back after `nap_ns`:
  // until then the agent leaves the looking to it.
  void PollForRoom(std::uint64_t nap_ns);
  // Those that sleep look again for themselves: who looked is no longer there, or who may go on has changed.
  void WakeWaiting();

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
  // Around a call of a submitting thread that may wait: a copy to the host.
  void BeginWait();
  void EndWait();
  // There is no room: the host is far ahead of the device, which is what it waits for until a launch finds less than
  // half a window in flight. Not only while it waits for room, or each launch of a program that is bound by the device
  // would be two reports.
  void NoteHostAhead();
  // Whether the last thing on the stream is a marker of ours that was recorded in the last kFreshNs: it alone may be
  // what a query finds unfinished. One that is older is behind work of the program, which may be unfinished.
  static constexpr std::uint64_t kFreshNs = 300'000;
  bool IsFreshlyMarked(const StreamKey& stream, std::uint64_t now_ns) const;
  // Whether all that the program has submitted to the stream is known to have finished, but a marker of ours, of
  // whatever age, may not be reached yet: one behind an event that the program has waited for, or one that another
  // thread was recording while the program synchronised. Of the legacy default stream: the same of all streams that it
  // waits for.
  bool IsBehindOwnMarker(const StreamKey& stream) const;
  // Whether that may be so for any stream now or later: work is counted here, behind which one may be recorded, or a
  // marker of ours was recorded less than kMarkerIsOldNs ago, and nothing has shown yet that it is reached. The age is
  // for a stream that is never asked about again.
  static constexpr std::uint64_t kMarkerIsOldNs = 100'000'000;
  bool HasOwnMarkers(std::uint64_t now_ns) const;
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
  // Known GPU time of what is in flight: the longest that a wait for room should take.
  std::uint64_t InFlightNs() const;
  bool IsBusy() const;
  // Streams that are known here: what each look at them costs.
  std::size_t Streams() const;
  // `see`(stream, what it has in flight, when that moved last) of each, under the lock.
  template <typename See>
  void SeeStreams(See see) const {
    const Lock lock(mutex_);
    for (const auto& [key, stream] : streams_)
      see(key.handle, stream.in_flight, stream.progress_ns);
  }

 private:
  static constexpr std::uint64_t kRecording = ~std::uint64_t{0};
  // For so long, and so many times in a row, a stream that becomes busy goes without a start marker.
  static constexpr std::uint64_t kStartRestNs = 10'000'000;
  static constexpr std::uint32_t kStartsLeftOut = 7;

  struct StreamState {
    StreamWork work;
    InFlight in_flight;            // admitted or launched, and not settled
    std::uint32_t admitted = 0;    // threads between Admit and Leave
    std::uint32_t turn = 0;        // counts those admitted
    std::uint64_t end_ns = 0;      // of the marker clock: the end of what was measured last
    std::uint64_t started_ns = 0;  // when a start marker was recorded last
    std::uint32_t left_out = 0;    // start markers since then that were not needed
    std::uint64_t marked_at_ns = 0;
    // A marker of ours that may not be reached yet: batches from this number on were begun after it had been recorded.
    // 0: none; kRecording: it is being recorded.
    std::uint64_t own_marker = 0;
    std::uint64_t recorded_ns = 0;    // when a marker of ours was recorded last
    std::uint64_t progress_ns = 0;    // when work on it settled last, or when it got its first after it had none
    std::uint64_t busy_since_ns = 0;  // kept while there are deadlines
    std::uint32_t pins = 0;           // threads that record on it with the lock released
    bool non_blocking = false;
    bool is_gone = false;  // its thread has ended: forgotten when it is idle
    Activity activity;
  };
  // Settled work whose markers have not been asked for their times yet.
  struct Measurement {
    StreamKey stream;
    SettledWork done;
  };
  using Lock = std::unique_lock<std::mutex>;

  // While it lives a stream stays where it is, though the lock is released meanwhile. The lock is held at both ends.
  class Pin {
   public:
    Pin(DeviceTracker* tracker, StreamState* stream) : tracker_(tracker), stream_(stream) { ++stream_->pins; }
    ~Pin() {
      if (--stream_->pins == 0) tracker_->unpinned_.notify_all();
    }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;

   private:
    DeviceTracker* const tracker_;
    StreamState* const stream_;
  };
  // For a caller that holds the mutex by another lock: one that may be let go, and is held again at the end.
  struct Relock {
    explicit Relock(DeviceTracker* tracker) : lock(tracker->mutex_, std::adopt_lock) {}
    ~Relock() { lock.release(); }
    Relock(const Relock&) = delete;
    Relock& operator=(const Relock&) = delete;
    Lock lock;
  };
  enum class In { kOwnLaunch, kElsewhere };  // the call in which a marker is recorded

  StreamState& Find(const StreamKey& key) {
    const Found& found = found_[PlaceOf(key)];
    return found.key == key ? *found.stream : FindInMap(key);
  }
  StreamState& FindInMap(const StreamKey& key);
  // Before streams are erased.
  void ForgetFound() {
    found_ = {};
    ++forgets_;
  }
  // Of a ticket that is not void.
  StreamState& StreamOf(const Ticket& ticket) {
    return ticket.forgets == forgets_ ? *static_cast<StreamState*>(ticket.state) : Find(ticket.stream);
  }
  static std::size_t PlaceOf(const StreamKey& key) {
    const std::uint64_t mixed = (reinterpret_cast<std::uintptr_t>(key.handle) + key.thread) * 0x9e3779b97f4a7c15ull;
    return static_cast<std::size_t>(mixed >> (64 - kFoundBits));
  }
  // What is called Unlock... lets the lock go for calls of the runtime, and has it again when it returns.

  // The parts of Begin, each also a call of its own for who has to wait in between.
  StreamState& EnterLocked(Ticket* ticket, std::uint64_t now_ns);
  bool AdmitLocked(Ticket* ticket, StreamState& stream, const Window& window, bool force);
  bool HasRoomBeside(const Ticket& ticket, const StreamState& stream, const Window& window,
                     std::uint64_t cost_ns) const;
  void StartLocked(Ticket* ticket, StreamState& stream, bool may_time);
  bool IsSettled(const Ticket& ticket) const { return ticket.is_known && times_.Costs().IsSettled(ticket.place); }
  void UnlockToMarkStart(Ticket* ticket, StreamState& stream, bool may_be_timed, bool is_first_of_batch);
  void UnlockToAnchor(Lock& lock, const Ticket& ticket, StreamState& stream);
  // `is_due`: also for another reason than that the launch was timed.
  void UnlockToMarkEnd(const Ticket& ticket, const StreamState& stream, bool is_due);
  void BecomeBusy(StreamState* stream);
  void LeaveWithNothing(const Ticket& ticket, bool ok);
  void NewDeadline(StreamState* stream);
  void HostNoLongerAhead();
  // Whether the legacy default stream of this device has others that wait for it and that it waits for.
  bool HasBlockingStreams() const { return !blocking_.empty(); }
  // Whether success of a synchronisation with `key` says that `other`, a stream in the state `state`, has finished,
  // too. The legacy default stream waits for all streams of its device that are not made non-blocking, but not for the
  // default streams of threads.
  static bool IsWaitedFor(const StreamKey& key, const StreamKey& other, const StreamState& state) {
    return key == other || (key == StreamKey{} && other.thread == 0 && !state.non_blocking);
  }
  // Whether a marker may be recorded on the stream, or the runtime be asked about it, outside of its own launches.
  bool MayMarkElsewhere(const StreamKey& key) const {
    return key.thread == 0 && !(key == StreamKey{} && HasBlockingStreams());
  }
  // Whether a marker may be recorded there now.
  bool MayMarkNow(const StreamKey& key) const { return implicit_syncs_ == 0 && MayMarkElsewhere(key); }
  bool IsAnyPinned() const;
  static bool IsOpen(const StreamState& stream) { return stream.work.HasOpen(); }
  void AddInFlight(StreamState& stream, const InFlight& part) {
    in_flight_.Add(part);
    stream.in_flight.Add(part);
  }
  void RemoveInFlight(StreamState& stream, const InFlight& part) {
    in_flight_.Remove(part);
    stream.in_flight.Remove(part);
  }
  InFlight CountedFor(const StreamKey& key, const Window& window, std::uint64_t now_ns) const;
  std::uint64_t CloseOpen(StreamState& stream);
  void UnlockToMark(Lock& lock, const StreamKey& key, LaunchKey timed, In in);
  bool UnlockToRecord(Lock& lock, void* marker, const StreamKey& key);
  void UnlockToMarkEach(Lock& lock, bool (*wanted)(const StreamState&));
  // Calls visit(stream's key) for each stream of which is_wanted(key, state), in rounds: it lets the lock go.
  template <typename IsWanted, typename Visit>
  void UnlockForEach(IsWanted is_wanted, Visit visit) {
    std::optional<StreamKey> last;
    for (;;) {
      auto next = last ? streams_.upper_bound(*last) : streams_.begin();
      while (next != streams_.end() && !is_wanted(next->first, next->second))
        ++next;
      if (next == streams_.end()) return;
      last = next->first;
      visit(*last);
    }
  }
  void UnlockToAsk(Lock& lock, const StreamKey& key);
  void Settle(const StreamKey& key, StreamState& stream, std::uint64_t last_batch);
  void UnlockToPoll(Lock& lock);
  void UnlockToPollForRoom(Lock& lock, std::uint64_t nap_ns);
  std::uint64_t NapForRoomNs(std::uint64_t now_ns) const;
  std::uint64_t NextLookNs(std::uint64_t now_ns) const;
  std::uint64_t QuietNs() const;
  void UnlockToMeasure(Lock& lock);
  void Account(const Measurement& measurement, std::optional<std::uint64_t> from, std::optional<std::uint64_t> to);
  void Reprice();
  void AfterSettling();
  void ReportBusy();
  void BeginWaitLocked() {
    ++blocked_;
    UpdateWaits();
  }
  void UpdateWaits();
  void UpdateDeadline();
  void PublishLimit();
  void Publish();
  void* UnlockToTakeMarker(Lock& lock);

  abi::LedgerDevice nobodys_{};  // counters while there is no sink
  DeviceTimes times_;
  const int device_;
  std::uint32_t marking_legacy_ = 0;  // threads that record on the legacy default stream outside of a launch
  const Vendor* const vendor_;
  Captures* const captures_;
  const Deadlines* const deadlines_;
  mutable std::mutex mutex_;
  std::condition_variable unpinned_;  // a stream, or the streams as a whole: is_polling_, is_measuring_
  TrackerSink* sink_ = nullptr;
  abi::LedgerDevice* ledger_ = &nobodys_;  // never null
  std::uint64_t epoch_ = 1;
  std::map<StreamKey, StreamState> streams_;
  // Those that were looked for last: a launch finds its stream without the map.
  struct Found {
    StreamKey key{nullptr, ~std::uint64_t{0}};  // nobody's
    StreamState* stream = nullptr;
  };
  static constexpr unsigned kFoundBits = 6;
  std::array<Found, std::size_t{1} << kFoundBits> found_{};
  std::unordered_map<void*, Snapshot> events_;
  std::uint32_t gone_ = 0;     // streams whose thread has ended
  std::uint32_t forgets_ = 0;  // how often streams have been erased
  std::unordered_set<void*> non_blocking_;
  std::unordered_set<void*> blocking_;  // not the legacy default stream itself
  MarkerPool markers_;
  RoomWaiters room_waiters_;
  RingQueue<Measurement> unmeasured_;
  MarkerClock clock_;  // the measuring thread's
  std::uint64_t next_batch_ = 1;
  InFlight in_flight_;                // of all streams
  std::uint32_t launched_ = 0;        // of these, launched
  std::uint32_t entered_ = 0;         // threads between Enter and Leave
  std::uint32_t syncing_ = 0;         // threads in a call that will settle
  std::uint32_t blocked_ = 0;         // threads in a call that waits, or may
  std::uint32_t implicit_syncs_ = 0;  // threads in a call that may synchronise, and does not say so
  std::uint64_t last_submit_ns_ = 0;  // when somebody last asked to submit and had not to wait
  std::uint64_t last_poll_ns_ = 0;    // while a thread synchronises
  std::uint64_t others_look_ns_ = 0;  // until then a thread that waits for the window looks
  std::uint64_t looked_at_ = 0;       // of submissions, when the agent looked last
  std::uint64_t deadline_ns_ = 0;
  std::uint64_t submitted_ = 0;
  std::uint64_t completed_ = 0;
  Window limit_window_;        // what the window's limit in the ledger was reckoned from
  bool is_measuring_ = false;  // one thread at a time, with the lock released
  bool is_polling_ = false;    // the same
  bool is_awaited_ = false;    // when the agent looked last
  bool busy_ = false;
  bool is_host_ahead_ = false;
  bool waits_ = false;  // reported of what is busy
};

}  // namespace xschedd::shim
