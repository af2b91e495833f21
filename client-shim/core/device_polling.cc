// DeviceTracker's polling of its markers, by a thread that waits for the window and by the agent (polling.h says when).
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "client-shim/core/device_tracker.h"
#include "client-shim/core/polling.h"
#include "common/clock.h"

namespace xschedd::shim {
namespace {

// How long nothing must have been launched before the agent records a marker. With the agent's interval this keeps the
// delay of "idle" under 200 µs.
constexpr std::uint64_t kQuietNs = 80'000;

// How often the agent polls while a thread is in a synchronising call. Its end settles the work, but during a long wait
// the GPU time in the ledger must not stand still.
constexpr std::uint64_t kSyncPollNs = 2'000'000;

// How much later than announced a thread that waits for the window may poll again.
constexpr std::uint64_t kOversleepNs = 60'000;

// The longest sleep of a thread that waits for the window while another one polls.
constexpr std::chrono::milliseconds kLongestWait{10};

// How many streams are polled in one round, in which the lock is released once.
constexpr std::size_t kRound = 16;

// Between two polls of a spinning thread: about a microsecond, in which others get the lock.
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

// ---- one poll ------------------------------------------------------------------------------------------------------

void DeviceTracker::UnlockToPoll(Lock& lock) {
  struct Candidate {
    StreamKey key;
    std::uint64_t id;
    void* marker;
    MarkerState state;
  };
  if (is_polling_ || captures_->AreCallsForbidden()) return;
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
      // kBroken settles the batch, too: that marker will never be reached. If the batch was settled meanwhile and its
      // marker is in use again, the answer may be about the new use; but then nothing is left to settle.
      Settle(candidates[i].key, *stream, candidates[i].id);
      if (stream->work.IsIdle() && stream->pins == 0) stream->own_marker = 0;
      is_any_done = true;
    }
    if (is_any_done) continue;  // the same streams again: their next markers may be done, too
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
  others_poll_until_ns_ = MonotonicNs() + nap_ns + kOversleepNs;
  FoldAll();
  UnlockToPoll(lock);
  // Each stream needs a marker of its own: one stream proves nothing about another.
  UnlockToMarkEach(
      lock, [](const TrackedStream& stream) { return !stream.work.IsIdle() && stream.work.OldestMarked() == nullptr; });
}

void DeviceTracker::AwaitRoom(std::uint64_t epoch, std::uint32_t room_generation) {
  Lock lock(mutex_);
  const auto is_as_seen = [&] { return admission_.Waiters().Generation() == room_generation; };
  if (epoch != epoch_ || !is_as_seen()) return;
  RoomWaiters::Waiting waiting(&admission_.Waiters());
  if (!waiting.IsPoller()) return waiting.UnlockToSleep(lock, kLongestWait);
  UnlockToPollForRoom(lock, 0);
  if (!is_as_seen()) return;
  const std::uint64_t now = MonotonicNs();
  if (const std::uint64_t nap_ns = NapForRoomNs(now); nap_ns != 0) {
    others_poll_until_ns_ = now + nap_ns + kOversleepNs;
    const PreciseSleep precise;
    // A synchronisation of another thread may wake it earlier.
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
  TakeBackAll();  // while the host is ahead, each launch has to check whether it still is
  admission_.NoteHostAhead();
  UpdateWaits();
}

// The nap until the first of the streams' oldest markers is due. A batch begins when the one before it was settled.
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
  now_ns = std::max(now_ns, last_submit_ns_);  // a launch may have read the clock after the caller
  const bool is_used = reports_.Submitted() != submitted_at_tick_;
  submitted_at_tick_ = reports_.Submitted();
  is_awaited_ = is_awaited;
  // A client that is still in use is watched on: otherwise the launch after each short pause would wake the agent.
  const bool is_lazy = !is_awaited || AreEndsShown();
  const std::uint64_t if_idle_ns = is_used && is_lazy ? now_ns + kLazyNs : kNever;
  if (captures_->AreCallsForbidden()) return kNever;
  if (reports_.Launched() == 0) return if_idle_ns;
  // A thread in a synchronising call settles, and one that waits for the window polls. Then the agent need not.
  const bool others_poll = now_ns < others_poll_until_ns_ || (syncing_ > 0 && now_ns < last_poll_ns_ + kSyncPollNs);
  if (!others_poll) {
    if (syncing_ > 0) {
      last_poll_ns_ = now_ns;
    } else if (now_ns - last_submit_ns_ >= QuietNs()) {
      UnlockToMarkEach(lock, [](const TrackedStream& stream) { return !stream.work.IsMarked() && stream.pins == 0; });
    }
    UnlockToPoll(lock);
    if (reports_.Launched() == 0) {
      quiet_since_ns_ = now_ns;
      return if_idle_ns;
    }
  }
  return NextTickNs(now_ns, is_used);
}

// An end that the agent has found weighs as much as two that calls have shown: looking costs little beside a late
// opening.
void DeviceTracker::BeginWork(std::uint64_t now_ns) {
  const bool is_shown = quiet_since_ns_ == 0;
  if (is_shown || now_ns >= quiet_since_ns_ + kQuietLeftNs) {
    quiet_ends_ = is_shown ? std::max(quiet_ends_ - 1, 0) : std::min(quiet_ends_ + 2, 4);
    busy_since_ns_ = now_ns;
  }
  quiet_since_ns_ = 0;
  was_launching_ = false;
  reports_.SetBusy();
}

// What the agent has found, this call would have shown as well, soon enough. While the agent looks often it is the
// first to see each end, also of a program whose next call synchronises.
void DeviceTracker::NoteShown() {
  if (quiet_since_ns_ != 0 && MonotonicNs() < quiet_since_ns_ + kQuietLeftNs) quiet_since_ns_ = 0;
}

// How long nothing must have been submitted. If nobody waits for this client's "idle", short pauses are left alone.
std::uint64_t DeviceTracker::QuietNs() const {
  return is_awaited_ ? kQuietNs : std::max(kQuietNs, kLazyNs / 2);
}

// `is_steady`: it was launching at this Tick and at the one before.
bool DeviceTracker::IsLazy(std::uint64_t now_ns, bool is_steady) const {
  if (!is_awaited_ || AreEndsShown()) return true;
  const bool ends_quietly = quiet_ends_ >= 2 && now_ns < busy_since_ns_ + kEndsSoonNs;
  return !ends_quietly && (is_steady || syncing_ > 0);
}

// The client can be idle once all that is in flight is due and nothing was submitted for a while. `is_used`: something
// was submitted since the tick before.
std::uint64_t DeviceTracker::NextTickNs(std::uint64_t now_ns, bool is_used) {
  const bool is_launching = is_used && now_ns - last_submit_ns_ < kQuietNs;
  const bool is_steady = std::exchange(was_launching_, is_launching) && is_launching;
  std::uint64_t due_ns = 0;
  for (const auto& [key, stream] : streams_) {
    if (stream.in_flight.launches > 0) due_ns = std::max(due_ns, stream.progress_ns + stream.in_flight.cost_ns);
  }
  if (!times_.Average().HasValue()) due_ns = 0;  // without measurements, weights are guesses
  const std::uint64_t next_ns =
      std::max({now_ns + (IsLazy(now_ns, is_steady) ? kLazyNs : kWatchNs), due_ns, last_submit_ns_ + QuietNs(),
                std::min(others_poll_until_ns_, now_ns + kLazyNs)});
  return std::min(next_ns, now_ns + kLazyNs);
}

}  // namespace xschedd::shim
