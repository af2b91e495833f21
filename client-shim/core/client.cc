#include "client-shim/core/client.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <new>
#include <utility>

#include "common/clock.h"

namespace xschedd::shim {
namespace {

// How long the first GPU call of a process waits for its session. A daemon that is there answers in a few milliseconds,
// one that is not is known at once.
constexpr int kFirstAttemptMs = 100;

// The longest wait for the window without the window moving, if measured launches are longer than the lease.
constexpr std::uint64_t kLongestWindowWaitNs = 2'000'000'000;

// How long a query is made again because of nothing but a marker of ours, which takes microseconds; more on a loaded
// machine, where the thread that records or completes it may not run for a while.
constexpr std::uint64_t kLongestAskingNs = 5'000'000;

// The legacy default stream by its other name (hip_runtime_api.h).
constexpr std::uintptr_t kLegacyHandle = 1;

bool IsNonBlocking(unsigned stream_flags) {
  return (stream_flags & 1) != 0;  // hipStreamNonBlocking, CU_STREAM_NON_BLOCKING
}

bool IsDefaultStream(void* stream) {
  return reinterpret_cast<std::uintptr_t>(stream) <= kPerThreadHandle;
}

// A thread that has worked on a default stream of its own: its number, which no other thread of the process gets, and
// at its end word to the client, because that stream ends with it.
class WorkingThread {
 public:
  explicit WorkingThread(Client* client) : client_(client), number_(Next()) {}
  ~WorkingThread() { client_->ThreadEnded(number_); }
  WorkingThread(const WorkingThread&) = delete;
  WorkingThread& operator=(const WorkingThread&) = delete;
  std::uint64_t Number() const { return number_; }

 private:
  static std::uint64_t Next() {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  Client* const client_;
  const std::uint64_t number_;
};

// The core's part of a Submission.
struct Carried {
  DeviceTracker* tracker;  // null: nothing to do at the end
  Session* session;
  Ticket ticket;
  std::uint64_t drained_batch;  // what a call that drains its stream proves, as in a Snapshot
  std::uint64_t drained_epoch;
  std::uint32_t slot;
};
static_assert(sizeof(Carried) <= sizeof(Submission::core) && alignof(Carried) <= alignof(std::uint64_t) &&
              std::is_trivially_copyable_v<Carried>);

struct CarriedSync {
  DeviceTracker* tracker;
  Snapshot snapshot;
  std::uint64_t began_ns;  // of a query
};
static_assert(sizeof(CarriedSync) <= sizeof(Sync::core) && alignof(CarriedSync) <= alignof(std::uint64_t) &&
              std::is_trivially_copyable_v<CarriedSync>);

// Made at the beginning of a call, found at its end.
template <typename Part, std::size_t size>
Part& Make(std::byte (&core)[size]) {
  return *::new (core) Part;
}
template <typename Part, std::size_t size>
const Part& Made(const std::byte (&core)[size]) {
  return *std::launder(reinterpret_cast<const Part*>(core));
}

// What is launched, whatever its grid. 0: no single kernel.
LaunchKey FunctionOf(const Submission& submission) {
  return submission.kernel.kind == KernelKind::kNone ? 0 : reinterpret_cast<std::uintptr_t>(submission.kernel.handle);
}

// CLOCK_MONOTONIC as of the last tick of the kernel, a few milliseconds ago at most: a tenth of what reading it takes.
// Whether a launch is counted by a lease of 100 ms may be decided by it; who waits looks at the clock itself.
std::uint64_t CoarseNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// The launch path looks at this instead of the board's summary while the program holds work of its own, and after the
// end of a session that left markers.
const abi::Word kLook{1};

Environment ReadEnvironment(const StubTable& stub) {
  Environment environment = Environment::Read();
  if (stub.group != nullptr && *stub.group != '\0') environment.group = stub.group;
  return environment;
}

}  // namespace

Client::Client(const StubTable& stub)
    : stub_(stub),
      environment_(ReadEnvironment(stub)),
      priority_(environment_.priority),
      weight_(environment_.weight),
      schedules_streams_(environment_.schedules_streams),
      passthrough_(environment_.passthrough, stub),
      agent_(this, *stub.vendor) {
  attached_.store(stub.devices_seen, std::memory_order_relaxed);
  if (environment_.deadline_us) deadlines_.Set(*environment_.deadline_us);
}

void Client::Start() {
  const int device = stub_.vendor->current_device();
  if (device >= 0 && device < static_cast<int>(abi::kMaxDevices)) attached_.fetch_or(std::uint64_t{1} << device);
  if (!agent_.Start()) {
    Warn("this process runs unscheduled: the system has no thread left; raise its limit of processes");
    return;
  }
  agent_.WaitForFirstAttempt(kFirstAttemptMs);
}

// ---- work ----------------------------------------------------------------------------------------------------------

void Client::SubmitBegin(Submission* submission) {
  auto& carried = Make<Carried>(submission->core);
  carried.tracker = nullptr;
  submission->stop = nullptr;
  if (own_holds_.Any()) WaitWhileOwnHeld(*submission);
  const bool orders_streams = stream_gate_.IsOn();
  if (orders_streams) WaitForStreams(*submission);
  SessionUse use(session_);
  Session* const session = use.Get();
  if (session == nullptr && !orders_streams) return;
  // Nothing runs when a capturing stream is given work; the launch of the graph is what counts.
  if (captures_.Any() && stub_.vendor->is_capturing(submission->stream)) return;
  const int device = DeviceOf(submission->stream);
  if (device < 0 || device >= static_cast<int>(abi::kMaxDevices)) return;
  Attach(device);
  const auto slot = static_cast<std::uint32_t>(device);
  if (!orders_streams && !IsCounted(*session, slot)) return;
  DeviceTracker* tracker = ExistingTracker(device);
  if (tracker == nullptr) tracker = Tracker(device);
  const StreamKey stream = KeyOf(submission->stream);
  const LaunchKey function = FunctionOf(*submission);
  carried.tracker = tracker;
  carried.session = session;
  carried.slot = slot;
  use.Keep();  // until SubmitEnd
  // Nothing is configured to pass, and nobody is held: the gate is as it was a moment ago, when it was asked.
  const bool is_turn = !passthrough_.Any() && (GateWord(session, slot) & abi::kHeld) == 0;
  const Window window = WindowFor(session, slot, submission->stream);
  const bool has_begun =
      is_turn && tracker->Begin(&carried.ticket, stream, submission->key, function, window, submission->may_time);
  if (!has_begun) {
    if (!is_turn) carried.ticket = tracker->Enter(stream, submission->key, function);
    // What passes is GPU time like any other, and makes the client busy; it only waits for nothing, and is launched as
    // the program launches it.
    const bool passes = !is_turn && WaitForTurn(session, slot, *submission);
    const bool is_refused =
        is_turn || !tracker->Admit(&carried.ticket, WindowFor(session, slot, submission->stream), passes);
    if (is_refused) WaitForRoom(session, slot, tracker, *submission, &carried.ticket);
    tracker->Start(&carried.ticket, WindowFor(session, slot, submission->stream), submission->may_time && !passes);
  }
  submission->stop = carried.ticket.stop;
  if (submission->drains) {
    const Snapshot before = tracker->BeginSync(SyncScope::kStream, carried.ticket.stream);
    carried.drained_batch = before.last_batch;
    carried.drained_epoch = before.epoch;
  } else if (submission->reads) {
    tracker->BeginWait();
  }
}

void Client::SubmitEnd(Submission* submission, bool ok) {
  const auto& carried = Made<Carried>(submission->core);
  if (carried.tracker == nullptr) return;
  carried.tracker->Leave(carried.ticket, ok, submission->drains,
                         WindowFor(carried.session, carried.slot, submission->stream));
  if (submission->drains) {
    carried.tracker->EndSync(
        Snapshot{SyncScope::kStream, carried.ticket.stream, carried.drained_batch, carried.drained_epoch}, ok);
  } else if (submission->reads) {
    carried.tracker->EndWait();
  }
  if (carried.session != nullptr) SessionUse::End(carried.session);
  agent_.WorkSubmitted();
}

bool Client::IsCounted(const Session& session, std::uint32_t slot) const {
  if (AwaitsWordUntilNs() != 0) return true;
  return (session.Board().Word(slot) & abi::kFlagMask) != 0 && CoarseNs() < session.LeaseUntilNs();
}

// Before the client is busy: what the program holds itself holds nobody else back.
void Client::WaitWhileOwnHeld(const Submission& submission) {
  if (captures_.Any() && stub_.vendor->is_capturing(submission.stream)) return;
  if (passthrough_.Match(submission, *stub_.vendor) != nullptr) return;
  const int device = DeviceOf(submission.stream);
  if (own_holds_.Wait(device, ByOneName(submission.stream))) PointSummary();
}

// Waits at the gate, unless configuration lets the call pass: then it is counted, and the answer is true.
bool Client::WaitForTurn(Session* session, std::uint32_t slot, const Submission& submission) {
  for (;;) {
    const std::uint32_t epoch = passthrough_.Epoch();
    if (abi::Counter* const passed = passthrough_.Match(submission, *stub_.vendor)) {
      // relaxed: statistics.
      passed->fetch_add(1, std::memory_order_relaxed);
      if (session != nullptr) session->Ledger().Device(slot).passthrough.fetch_add(1, std::memory_order_relaxed);
      return true;
    }
    if (session == nullptr) return false;
    if (WaitAtGate(session, slot, passthrough_.EpochWord(), epoch)) return false;
  }
}

// For a ticket that was not admitted.
void Client::WaitForRoom(Session* session, std::uint32_t slot, DeviceTracker* tracker, const Submission& submission,
                         Ticket* ticket) {
  // Work in flight may itself be waiting for what this thread is about to submit (a stream that waits for a value, a
  // kernel that waits for the host). So the wait is bounded: by the lease, or by what launches are known to take.
  const auto patience_from = [&](std::uint64_t now) {
    const bool is_gated = (GateWord(session, slot) & abi::kFlagMask) != 0;
    return std::max(is_gated ? session->LeaseUntilNs() : now + kStreamStillNs,
                    now + std::min(2 * tracker->InFlightNs(), kLongestWindowWaitNs));
  };
  std::uint64_t patience = patience_from(MonotonicNs());
  std::uint32_t seen = GateWord(session, slot);
  tracker->NoteFarAhead();
  for (;;) {
    tracker->AwaitRoom(*ticket);
    const std::uint32_t word = GateWord(session, slot);
    const std::uint64_t now = MonotonicNs();
    const bool is_gated = (word & abi::kFlagMask) != 0 && session->IsAlive();
    const bool is_bound = (is_gated || stream_gate_.IsOn()) && now < patience;
    const bool is_held = is_gated && is_bound && (word & abi::kHeld) != 0;
    if (std::exchange(seen, word) != word) tracker->WakeWaiting();
    const bool passes = is_held && WaitForTurn(session, slot, submission);
    if (is_held) patience = patience_from(MonotonicNs());  // that was the gate's time, not the window's
    if (tracker->Admit(ticket, WindowFor(session, slot, submission.stream), passes || !is_bound)) break;
  }
  tracker->WakeWaiting();
}

// ---- completion ----------------------------------------------------------------------------------------------------

void Client::SyncBegin(Sync* sync, SyncScope scope, void* object) {
  auto& carried = Make<CarriedSync>(sync->core);
  carried.tracker = nullptr;
  if (scope == SyncScope::kEvent || scope == SyncScope::kEventQuery) {
    for (const auto& entry : trackers_) {
      DeviceTracker* tracker = entry.load(std::memory_order_acquire);
      if (tracker == nullptr) continue;
      const Snapshot snapshot = tracker->BeginEventSync(object, scope == SyncScope::kEventQuery);
      if (snapshot.epoch == 0) continue;
      carried = CarriedSync{tracker, snapshot, 0};
      return;
    }
    return;
  }
  const int device = scope == SyncScope::kDevice ? stub_.vendor->current_device() : DeviceOf(object);
  if (device < 0 || device >= static_cast<int>(abi::kMaxDevices)) return;
  DeviceTracker* tracker = ExistingTracker(device);
  if (tracker == nullptr) return;
  const StreamKey key = scope == SyncScope::kDevice ? StreamKey{} : KeyOf(object);
  const std::uint64_t now = scope == SyncScope::kQuery ? MonotonicNs() : 0;
  carried = CarriedSync{tracker, tracker->BeginSync(scope, key), now};
}

void Client::SyncEnd(Sync* sync, bool ok) {
  const auto& carried = Made<CarriedSync>(sync->core);
  if (carried.tracker == nullptr) return;
  carried.tracker->EndSync(carried.snapshot, ok);
  if (session_.load(std::memory_order_acquire) == nullptr) PointSummary();
}

bool Client::QueryAgain(const Sync& sync) {
  const auto& carried = Made<CarriedSync>(sync.core);
  if (carried.tracker == nullptr) return false;
  const StreamKey& stream = carried.snapshot.stream;
  const std::uint64_t now = MonotonicNs();
  const std::uint64_t asking_ns = now - carried.began_ns;
  if (carried.tracker->IsBehindOwnMarker(stream)) {
    if (asking_ns > kLongestAskingNs) {
      carried.tracker->LeaveOwnMarker(stream);
      return false;
    }
  } else if (asking_ns > DeviceTracker::kFreshNs || !carried.tracker->IsFreshlyMarked(stream, now)) {
    return false;
  }
  ::sched_yield();
  return true;
}

void Client::EventRecorded(void* event, void* stream) {
  if (session_.load(std::memory_order_acquire) == nullptr && !stream_gate_.IsOn()) return;
  // Recorded into a graph: it says nothing about work that runs.
  if (captures_.Any() && stub_.vendor->is_capturing(stream)) return;
  const int device = DeviceOf(stream);
  if (device < 0 || device >= static_cast<int>(abi::kMaxDevices)) return;
  for (const auto& entry : trackers_) {
    DeviceTracker* tracker = entry.load(std::memory_order_acquire);
    if (tracker == nullptr) continue;
    if (tracker == ExistingTracker(device)) {
      tracker->EventRecorded(event, KeyOf(stream));
    } else {
      tracker->EventDestroyed(event);  // what it stood for there is over
    }
  }
}

void Client::EventDestroyed(void* event) {
  for (const auto& entry : trackers_) {
    DeviceTracker* tracker = entry.load(std::memory_order_acquire);
    if (tracker != nullptr) tracker->EventDestroyed(event);
  }
}

// ---- streams and devices -------------------------------------------------------------------------------------------

int Client::DeviceOf(void* stream) {
  if (IsDefaultStream(stream)) return stub_.vendor->current_device();
  if (const std::optional<int> known = streams_.DeviceOf(stream)) return *known;
  const int device = stub_.vendor->device_of_stream(stream);
  if (device >= 0) streams_.Add(stream, StreamInfo{device, 0, 0, false});
  return device;
}

std::uint64_t Client::QueueId(const StreamKey& key) {
  // The per-thread default streams share a handle: the thread makes the name.
  return key.thread != 0 ? (key.thread << 8) | kPerThreadHandle : reinterpret_cast<std::uintptr_t>(key.handle);
}

void* Client::ByOneName(void* stream) {
  return reinterpret_cast<std::uintptr_t>(stream) == kLegacyHandle ? nullptr : stream;
}

StreamKey Client::KeyOf(void* stream) {
  const auto handle = reinterpret_cast<std::uintptr_t>(stream);
  if (handle == kLegacyHandle) return StreamKey{};
  if (handle != kPerThreadHandle) return StreamKey{stream, 0};
  thread_local const WorkingThread thread(this);
  return StreamKey{stream, thread.Number()};
}

void Client::ThreadEnded(std::uint64_t thread) {
  // In a child of fork, locks may be held by threads that are not there.
  if (is_forked_.load(std::memory_order_relaxed)) return;
  int cancel_state = 0;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  try {
    for (const auto& entry : trackers_) {
      DeviceTracker* tracker = entry.load(std::memory_order_acquire);
      if (tracker != nullptr) tracker->ForgetThread(thread);
    }
  } catch (...) {
    GiveUp();
  }
  ::pthread_setcancelstate(cancel_state, nullptr);
}

void Client::Attach(int device) {
  if (device < 0 || device >= static_cast<int>(abi::kMaxDevices)) return;
  const std::uint64_t bit = std::uint64_t{1} << device;
  // relaxed: a set that only grows.
  if ((attached_.load(std::memory_order_relaxed) & bit) != 0) return;
  if ((attached_.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
  if (session_.load(std::memory_order_acquire) != nullptr) AwaitWordUntil(MonotonicNs() + kFirstWordNs);
  agent_.DevicesChanged();
}

DeviceTracker* Client::Tracker(int device) {
  auto& entry = trackers_[static_cast<std::size_t>(device)];
  if (DeviceTracker* tracker = entry.load(std::memory_order_acquire)) return tracker;
  const std::lock_guard lock(session_mutex_);
  if (DeviceTracker* tracker = entry.load(std::memory_order_relaxed)) return tracker;
  auto* tracker = new DeviceTracker(device, stub_.vendor, &captures_, &deadlines_);
  for (const auto& [stream, info] : streams_.All()) {
    if (info.device == device) tracker->NoteStream(stream, IsNonBlocking(info.flags));
  }
  Session* session = session_.load(std::memory_order_relaxed);
  tracker->Reset(session != nullptr ? session->Sink(static_cast<std::uint32_t>(device)) : nullptr);
  entry.store(tracker, std::memory_order_release);
  return tracker;
}

void Client::StreamCreated(void* stream, int priority, unsigned flags) {
  const int device = stub_.vendor->current_device();
  if (device < 0 || device >= static_cast<int>(abi::kMaxDevices)) return;
  streams_.Add(stream, StreamInfo{device, priority, flags, true});
  {
    // Either it is in the table when a tracker is made, or it is noted here.
    const std::lock_guard lock(session_mutex_);
    if (DeviceTracker* tracker = ExistingTracker(device)) tracker->NoteStream(stream, IsNonBlocking(flags));
  }
  OrderStreams();
  Attach(device);
  agent_.Post(QueueCreatedMessage{reinterpret_cast<std::uintptr_t>(stream), static_cast<std::uint32_t>(device),
                                  priority, flags});
}

void Client::StreamDestroying(void* stream) {
  captures_.End(stream);
  // The handle may be another stream's soon.
  if (deadlines_.Any()) deadlines_.SetStream(stream, 0);
  if (priority_.HasStreams()) TellPriority(priority_.SetStream(stream, std::nullopt));
  if (weight_.HasStreams()) TellWeight(weight_.SetStream(stream, std::nullopt));
  if (own_holds_.Any()) ReleaseStream(stream);
  const std::optional<StreamInfo> info = streams_.Remove(stream);
  OrderStreams();
  if (!info) return;
  if (DeviceTracker* tracker = ExistingTracker(info->device)) tracker->ForgetStream(stream);
  if (info->was_seen_made) agent_.Post(QueueDestroyedMessage{reinterpret_cast<std::uintptr_t>(stream)});
}

void Client::DeviceReset() {
  const int device = stub_.vendor->current_device();
  if (device < 0 || device >= static_cast<int>(abi::kMaxDevices)) return;
  for (void* stream : streams_.RemoveDevice(device)) {
    captures_.End(stream);
    agent_.Post(QueueDestroyedMessage{reinterpret_cast<std::uintptr_t>(stream)});
  }
  OrderStreams();
  if (DeviceTracker* tracker = ExistingTracker(device)) tracker->ForgetDevice();
}

void Client::CaptureBegun(void* stream) {
  for (const auto& entry : trackers_) {
    DeviceTracker* tracker = entry.load(std::memory_order_acquire);
    if (tracker != nullptr) tracker->PrepareForCapture();
  }
  captures_.Begin(stream);
}

// ---- session -------------------------------------------------------------------------------------------------------

void Client::BeginSession(Session* session) {
  // One that was kept goes on with all that is under way.
  if (Session* const before = session_.load(std::memory_order_acquire); before != session) {
    const std::lock_guard lock(session_mutex_);
    for (std::uint32_t slot = 0; slot < abi::kMaxDevices; ++slot) {
      DeviceTracker* tracker = trackers_[slot].load(std::memory_order_relaxed);
      if (tracker != nullptr) tracker->Reset(session->Sink(slot));
    }
    // The session is complete. seq_cst: see SessionUse.
    session_.store(session, std::memory_order_seq_cst);
    if (before != nullptr) before->End();
  }
  PointSummary();
}

void Client::PointSummary() {
  const std::lock_guard lock(summary_mutex_);
  const Session* session = session_.load(std::memory_order_acquire);
  stub_.set_summary(HasGivenUp()                                     ? nullptr
                    : own_holds_.Any() || stream_gate_.IsOn()        ? &kLook
                    : session != nullptr && AwaitsWordUntilNs() != 0 ? &kLook
                    : session != nullptr                             ? session->Board().SummaryWord()
                    : HasOwnMarkers()                                ? &kLook
                                                                     : nullptr);
}

void Client::AwaitWordUntil(std::uint64_t until_ns) {
  word_until_ns_.store(until_ns, std::memory_order_relaxed);
  PointSummary();
}

// Of sessions that have ended. A query that finds one unfinished has to be asked again, as it was with the session.
bool Client::HasOwnMarkers() const {
  return std::any_of(trackers_.begin(), trackers_.end(), [](const std::atomic<DeviceTracker*>& entry) {
    const DeviceTracker* tracker = entry.load(std::memory_order_acquire);
    return tracker != nullptr && tracker->HasOwnMarkers();
  });
}

void Client::EndSession() {
  word_until_ns_.store(0, std::memory_order_relaxed);
  client_id_.store(0, std::memory_order_relaxed);
  const std::lock_guard lock(session_mutex_);
  Session* session = session_.exchange(nullptr, std::memory_order_seq_cst);
  PointSummary();
  if (session == nullptr) return;
  // Before its end, so that they can leave a level that is right: a restarted daemon may look at this ledger.
  for (const auto& entry : trackers_) {
    DeviceTracker* tracker = entry.load(std::memory_order_relaxed);
    if (tracker != nullptr) tracker->Reset(nullptr);
  }
  session->End();
}

void Client::GiveUp() {
  if (gave_up_.exchange(true)) return;
  own_holds_.ReleaseDevice(OwnHolds::kAllDevices);
  stream_gate_.Close();
  PointSummary();
  Session* session = session_.load(std::memory_order_acquire);
  if (session != nullptr) session->End();
  agent_.DevicesChanged();  // wakes the agent, which ends the session
}

void Client::Exiting() {
  is_exiting_.store(true, std::memory_order_seq_cst);
  captures_.ForbidForGood();
  stream_gate_.Close();
  Release(OwnHolds::kAllDevices);  // nobody is left to do it
  agent_.WaitUntilOutOfRuntime();
}

void Client::Forked() {
  // No locks: another thread of the parent may have held them. The ledger is shared with the parent and stays untouched
  // because nobody reaches it without the session.
  is_forked_.store(true, std::memory_order_relaxed);
  session_.store(nullptr, std::memory_order_relaxed);
}

void Client::SetDescription(std::uint64_t client_id, int effective_priority) {
  client_id_.store(client_id, std::memory_order_relaxed);
  effective_priority_.store(effective_priority, std::memory_order_relaxed);
}

void Client::SetPassthrough(const std::vector<std::string>& entries) {
  passthrough_.Configure(entries);
  if (Session* session = session_.load(std::memory_order_acquire)) session->WakeWaiters();
}

// ---- for the agent -------------------------------------------------------------------------------------------------

std::uint64_t Client::TickTrackers(std::uint64_t now_ns) {
  std::uint64_t result = DeviceTracker::kNever;
  const Session* const session = PublishedSession();
  for (std::uint32_t slot = 0; slot < trackers_.size(); ++slot) {
    DeviceTracker* tracker = trackers_[slot].load(std::memory_order_acquire);
    if (tracker == nullptr) continue;
    const bool is_awaited = session != nullptr && (session->Board().Word(slot) & abi::kAwaited) != 0;
    result = std::min(result, tracker->Tick(now_ns, is_awaited));
  }
  return result;
}

ActivityMessage Client::TakeActivity() {
  ActivityMessage message;
  message.passed = passthrough_.TakeCounts();
  for (std::uint32_t slot = 0; slot < abi::kMaxDevices; ++slot) {
    DeviceTracker* tracker = trackers_[slot].load(std::memory_order_acquire);
    if (tracker == nullptr) continue;
    for (const Activity& activity : tracker->TakeActivity()) {
      message.queues.push_back({QueueId(activity.stream), slot, activity.launches, activity.completions});
    }
  }
  return message;
}

std::vector<QueueCreatedMessage> Client::LiveQueues() const {
  std::vector<QueueCreatedMessage> queues;
  for (const auto& [stream, info] : streams_.All()) {
    if (!info.was_seen_made) continue;
    queues.push_back(
        {reinterpret_cast<std::uintptr_t>(stream), static_cast<std::uint32_t>(info.device), info.priority, info.flags});
  }
  return queues;
}

}  // namespace xschedd::shim
