// DeviceTracker's polling of its markers: by a thread that waits for the window, and by the agent (polling.h says
// when).
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "client-shim/core/device_tracker.h"
#include "client-shim/core/polling.h"
#include "common/clock.h"

namespace xschedd::shim {
namespace {

// How long a device must have been quiet before the agent drops a marker of its own there. With the agent's tick this
// keeps a late "idle" under 200 µs.
constexpr std::uint64_t kQuietNs = 80'000;

// How often the agent looks while a thread is in a call that will settle: what it settles is known at its end, but the
// GPU time of a long wait has to be told before.
constexpr std::uint64_t kSyncPollNs = 2'000'000;

// How much later than it said a thread that waits for the window may look again.
constexpr std::uint64_t kOversleepNs = 60'000;

// The longest sleep of a thread that waits for the window without looking for itself.
constexpr std::chrono::milliseconds kLongestWait{10};

// Streams looked at with the lock released once; there may be more rounds.
constexpr std::size_t kRound = 16;

// Between two looks of a thread that spins: about a microsecond, in which others get the lock.
constexpr int kPauses = 20;

// While it lives, the calling thread's sleeps are as long as they say: the default slack is 50 µs.
class PreciseSleep {
 public:
  PreciseSleep() : before_(::prctl(PR_GET_TIMERSLACK)) { ::prctl(PR_SET_TIMERSLACK, 1000); }
  ~PreciseSleep() { ::prctl(PR_SET_TIMERSLACK, before_ > 0 ? before_ : 0); }
  PreciseSleep(const PreciseSleep&) = delete;
  PreciseSleep& operator=(const PreciseSleep&) = delete;

 private:
  const int before_;
};

}  // namespace

// ---- one look ------------------------------------------------------------------------------------------------------

void DeviceTracker::UnlockToPoll(Lock& lock) {
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
    auto next = streams_.After(last);
    for (; next != streams_.end() && count < kRound; ++next) {
      const Batch* const oldest = next->second.work.OldestMarked();
      if (oldest != nullptr) candidates[count++] = {next->first, oldest->id, oldest->marker, MarkerState::kPending};
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
      TrackedStream* const stream = streams_.Known(candidates[i].key);
      if (stream == nullptr) continue;
      // Settled meanwhile, and the marker in use again: then the answer may be about its new use. The batch is gone, so
      // nothing is settled by it.
      // A marker that cannot be queried any more will never say anything: what it stood for is let go.
      Settle(candidates[i].key, *stream, candidates[i].id);
      if (stream->work.IsIdle() && stream->pins == 0) stream->own_marker = 0;
      is_any_done = true;
    }
    if (is_any_done) continue;  // the same streams again: behind a marker that is done there may be others that are
    if (is_last) break;
    last = reached;
  }
  is_polling_ = false;
  UnlockToFinishSettling(lock);
}

void DeviceTracker::Poll() {
  Lock lock(mutex_);
  UnlockToPoll(lock);
}

// ---- a thread that waits for the window ----------------------------------------------------------------------------

void DeviceTracker::PollForRoom(std::uint64_t nap_ns) {
  Lock lock(mutex_);
  UnlockToPollForRoom(lock, nap_ns);
}

void DeviceTracker::UnlockToPollForRoom(Lock& lock, std::uint64_t nap_ns) {
  others_look_ns_ = MonotonicNs() + nap_ns + kOversleepNs;
  FoldAll();
  UnlockToPoll(lock);
  // Each by itself: the marker of one that stands still tells nothing about the others.
  UnlockToMarkEach(
      lock, [](const TrackedStream& stream) { return !stream.work.IsIdle() && stream.work.OldestMarked() == nullptr; });
}

void DeviceTracker::AwaitRoom(std::uint64_t epoch, std::uint32_t rooms) {
  Lock lock(mutex_);
  const auto is_as_seen = [&] { return admission_.Waiters().Rooms() == rooms; };
  if (epoch != epoch_ || !is_as_seen()) return;
  RoomWaiters::Waiting waiting(&admission_.Waiters());
  if (!waiting.Polls()) return waiting.UnlockToSleep(lock, kLongestWait);
  UnlockToPollForRoom(lock, 0);
  if (!is_as_seen()) return;
  const std::uint64_t now = MonotonicNs();
  if (const std::uint64_t nap_ns = NapForRoomNs(now); nap_ns != 0) {
    others_look_ns_ = now + nap_ns + kOversleepNs;
    const PreciseSleep precise;
    // A synchronisation of another thread may make room before.
    waiting.UnlockToSleep(lock, std::chrono::nanoseconds(nap_ns));
    return UnlockToPollForRoom(lock, 0);
  }
  const std::uint64_t until_ns = now + kShortestNapNs;
  while (is_as_seen() && MonotonicNs() < until_ns) {
    lock.unlock();
    for (int i = 0; i < kPauses; ++i)
      __builtin_ia32_pause();
    lock.lock();
    UnlockToPollForRoom(lock, 0);
  }
}

bool DeviceTracker::LacksMarkers() const {
  const Lock lock(mutex_);
  return markers_.IsFailing() && std::none_of(streams_.begin(), streams_.end(), [](const auto& entry) {
           return entry.second.work.OldestMarked() != nullptr;
         });
}

void DeviceTracker::WakeWaiting() {
  const Lock lock(mutex_);
  admission_.Waiters().Wake();
}

void DeviceTracker::NoteHostAhead() {
  const Lock lock(mutex_);
  TakeBackAll();  // each launch looks whether the host is still ahead
  admission_.NoteHostAhead();
  UpdateWaits();
}

// By the stream whose oldest marker is due first: its batch began when the one before it was settled.
std::uint64_t DeviceTracker::NapForRoomNs(std::uint64_t now_ns) const {
  std::uint64_t nap_ns = kLongestLateNapNs;
  bool is_first = true;
  for (const auto& [key, stream] : streams_) {
    if (stream.work.OldestMarked() == nullptr) continue;
    const std::uint64_t its_ns = NapNs(now_ns, stream.progress_ns + stream.work.CostToOldestMarkedNs());
    nap_ns = is_first ? its_ns : std::min(nap_ns, its_ns);
    is_first = false;
  }
  return nap_ns;
}

// ---- the agent -----------------------------------------------------------------------------------------------------

std::uint64_t DeviceTracker::Tick(std::uint64_t now_ns, bool is_awaited) {
  Lock lock(mutex_);
  FoldAll();
  now_ns = std::max(now_ns, last_submit_ns_);  // since the caller looked at the clock
  const bool is_used = reports_.Submitted() != looked_at_;
  looked_at_ = reports_.Submitted();
  // Of a client that launches all the time, the launch behind each short pause would wake the agent for nothing.
  is_awaited_ = is_awaited;
  const std::uint64_t if_idle_ns = is_used && !is_awaited ? now_ns + kLazyNs : kNever;
  if (captures_->Forbid()) return kNever;
  if (reports_.Launched() == 0) return if_idle_ns;
  // A thread in a synchronising call settles; one that waits for the window polls. The agent only stands by.
  const bool others_look = now_ns < others_look_ns_ || (syncing_ > 0 && now_ns < last_poll_ns_ + kSyncPollNs);
  if (!others_look) {
    if (syncing_ > 0) {
      last_poll_ns_ = now_ns;
    } else if (now_ns - last_submit_ns_ >= QuietNs()) {
      UnlockToMarkEach(lock, [](const TrackedStream& stream) { return !stream.work.IsMarked() && stream.pins == 0; });
    }
    UnlockToPoll(lock);
    if (reports_.Launched() == 0) return if_idle_ns;
  }
  return NextLookNs(now_ns);
}

// How long nothing must have been submitted: a client that may be noticed late is not asked after in each of its
// pauses.
std::uint64_t DeviceTracker::QuietNs() const {
  return is_awaited_ ? kQuietNs : std::max(kQuietNs, kLazyNs / 2);
}

// All that is in flight has to end before the client is idle, and nothing may have been submitted for a while.
std::uint64_t DeviceTracker::NextLookNs(std::uint64_t now_ns) const {
  std::uint64_t due_ns = 0;
  for (const auto& [key, stream] : streams_) {
    if (stream.in_flight.launches > 0) due_ns = std::max(due_ns, stream.progress_ns + stream.in_flight.cost_ns);
  }
  if (!times_.Average().HasValue()) due_ns = 0;  // what launches weigh is a guess
  const std::uint64_t next_ns = std::max({now_ns + (is_awaited_ ? kWatchNs : kLazyNs), due_ns,
                                          last_submit_ns_ + QuietNs(), std::min(others_look_ns_, now_ns + kLazyNs)});
  return std::min(next_ns, now_ns + kLazyNs);
}

}  // namespace xschedd::shim
