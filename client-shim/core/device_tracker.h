// What a client has submitted to one device while tracked, and what of it is known to have finished.
//
// Work is counted per stream, in batches. A batch is closed by a marker recorded behind it, or, without one, when a
// call begins whose success will prove that everything up to here has finished. A batch settles when its marker, or
// that of a later batch of the same stream, is done, or when such a call succeeds; so one stream proves nothing about
// another.
//
//     launches ──► open ──(marker recorded / a sync begins)──► batch ──(marker done / sync succeeded)──► completed
//
// A start marker is recorded when a stream becomes busy: the time from it, or from the marker before, to a batch's own
// marker is the stream's GPU time. Where streams of one client overlap, their times add up.
//
// Busy is reported when the first thread comes to submit (it may still have to wait at the gate: that is what the
// daemon has to know), idle when nothing is left. Reports are made under the lock, so that they reach the ring in
// order.
//
// Thread rule: any thread. The lock is never held over a call of the runtime that could block, nor over a wait.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "client-shim/core/captures.h"
#include "client-shim/core/interface.h"
#include "client-shim/core/window.h"

namespace xschedd::shim {

// Where a tracker's reports and counters go: the ledger of the session. A test has its own.
class TrackerSink {
 public:
  virtual ~TrackerSink() = default;
  virtual void Report(abi::TransitionKind kind) = 0;  // called in order; never blocks
  virtual void Publish(std::uint32_t in_flight, std::uint32_t window_limit, std::uint64_t submitted,
                       std::uint64_t completed, std::uint64_t gpu_time_ns) = 0;
};

// A stream on one device. The per-thread default stream has one handle for all threads; `thread` tells them apart.
struct StreamKey {
  void* handle = nullptr;
  std::uint64_t thread = 0;
  auto operator<=>(const StreamKey&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 takes it for a 0
};

// What Enter hands to Admit and Leave.
struct Ticket {
  StreamKey stream;
  std::uint64_t epoch = 0;  // of the tracker; a ticket from before a Reset is void
  bool admitted = false;
};

// What a call that proves completion covers.
struct Snapshot {
  SyncScope scope = SyncScope::kDevice;
  StreamKey stream;
  std::uint64_t last_batch = 0;  // batches up to this one; 0: none
  std::uint64_t epoch = 0;
};

struct Activity {
  StreamKey stream;
  std::uint64_t launches = 0;
  std::uint64_t completions = 0;
};

class DeviceTracker {
 public:
  // `vendor` and `captures` outlive the tracker. While a capture forbids it, the runtime is left alone: nothing is
  // recorded, queried or measured, and the window lets everybody in, because nothing could be waited for.
  DeviceTracker(int device, const Vendor* vendor, const Captures* captures)
      : device_(device), vendor_(vendor), captures_(captures) {}

  // ---- session
  // Starts counting from nothing for a new session, or, with null, drops everything. `sink` outlives its use here.
  void Reset(TrackerSink* sink);

  // ---- the submitting thread, in this order
  Ticket Enter(const StreamKey& stream);
  // Whether there is room in the window now; counts the caller in if so. `force`: whether or not.
  bool Admit(Ticket* ticket, const Window& window, bool force);
  // Before the real call of an admitted ticket: records the start marker if the stream was idle.
  void Start(const Ticket& ticket);
  // After the real call. `ok`: it succeeded; `finished`: and its work is done already. Records a marker if one is due.
  void Leave(const Ticket& ticket, bool ok, bool finished, const Window& window);
  // A thread that waits for the window: looks at the markers; records one where there is none to wait for.
  void MakeRoom();

  // ---- proofs of completion
  // Closes what is open, with a marker behind it, so that its GPU time is known.
  Snapshot BeginSync(SyncScope scope, const StreamKey& stream);
  void EndSync(const Snapshot& snapshot, bool ok);
  // The same around an event: EventRecorded remembers how far the stream had come. BeginEventSync gives what `event`
  // proves; its snapshot's epoch is 0 if nothing is known.
  void EventRecorded(void* event, const StreamKey& stream);
  void EventDestroyed(void* event);
  Snapshot BeginEventSync(void* event);
  // Looks at the oldest marker of each stream.
  void Poll();

  // ---- the agent
  enum class Attention { kNone, kSoon };
  // Settles what is done; records markers behind what has been quiet for a while. kNone: nothing here needs looking at.
  Attention Tick(std::uint64_t now_ns);

  // ---- streams
  void NoteNonBlocking(void* stream);
  // Nobody touches the stream after this returns. May wait for an agent that is recording on it.
  void ForgetStream(void* stream);
  // The device is about to be reset: its streams and markers go.
  void ForgetDevice();

  std::vector<Activity> TakeActivity();
  std::uint64_t AverageNs() const;  // GPU time of one launch as measured so far; 0: nothing measured
  std::uint32_t InFlight() const;
  bool IsBusy() const;

 private:
  struct Batch {
    std::uint64_t id;
    std::uint32_t launches;
    void* marker;  // null: none, or not recorded yet
  };
  struct StreamState {
    std::deque<Batch> batches;       // oldest first
    std::uint32_t open = 0;          // launched, behind the newest batch
    std::uint32_t admitted = 0;      // threads between Admit and Leave
    void* anchor = nullptr;          // a done or earlier marker: where the unmeasured time begins
    std::uint32_t since_anchor = 0;  // launches settled since then
    std::uint32_t pins = 0;          // threads that record on it with the lock released
    bool non_blocking = false;
    Activity activity;
  };
  using Lock = std::unique_lock<std::mutex>;

  StreamState& Find(const StreamKey& key);
  bool MayAgentMark(const StreamKey& key) const { return key.thread == 0; }
  bool IsStreamIdle(const StreamState& stream) const { return stream.batches.empty() && stream.open == 0; }
  std::uint64_t Close(StreamState& stream, void* marker);
  void Mark(Lock& lock, const StreamKey& key);
  void Settle(StreamState& stream, std::uint64_t last_batch);
  void PollLocked(Lock& lock);
  void Measure(StreamState& stream, void* marker);
  void AfterSettling();
  void Publish();
  void* TakeMarker(Lock& lock);
  void GiveMarker(void* marker) {
    if (marker != nullptr) pool_.push_back(marker);
  }

  const int device_;
  const Vendor* const vendor_;
  const Captures* const captures_;
  mutable std::mutex mutex_;
  TrackerSink* sink_ = nullptr;
  std::uint64_t epoch_ = 1;
  std::map<StreamKey, StreamState> streams_;
  std::unordered_map<void*, Snapshot> events_;
  std::unordered_map<void*, bool> non_blocking_;
  std::vector<void*> pool_;  // markers for use; never destroyed, their number is that of markers pending at once
  std::uint64_t next_batch_ = 1;
  std::uint32_t entered_ = 0;   // threads between Enter and Leave
  std::uint32_t admitted_ = 0;  // of these, admitted
  std::uint32_t launched_ = 0;  // launched and not settled
  std::uint32_t syncing_ = 0;   // threads in a call that will settle
  std::uint32_t limit_ = kUnlimited;
  std::uint64_t submitted_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t gpu_time_ns_ = 0;
  std::uint64_t last_submit_ns_ = 0;
  bool busy_ = false;
  DurationEstimate estimate_;
};

}  // namespace xschedd::shim
