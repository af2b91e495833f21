#include "client-shim/core/client.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <bit>

#include "client-shim/core/carried.h"
#include "common/clock.h"

namespace xschedd::shim {
namespace {

// How long the first GPU call of a process waits for its session. A daemon that is there answers in a few milliseconds,
// one that is not is known at once.
constexpr int kFirstAttemptMs = 100;

// How long a query is made again because of nothing but a marker of ours, which takes microseconds; more on a loaded
// machine, where the thread that records or completes it may not run for a while.
constexpr std::uint64_t kLongestAskingNs = 5'000'000;

bool IsNonBlocking(unsigned stream_flags) {
  return (stream_flags & 1) != 0;  // hipStreamNonBlocking, CU_STREAM_NON_BLOCKING
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

struct CarriedSync {
  DeviceTracker* tracker;
  Snapshot snapshot;
  std::uint64_t began_ns;  // of a query
  std::uint64_t implicit;  // devices, a bit each, whose trackers know of an implicit synchronisation
};
static_assert(abi::kMaxDevices <= 64);

// The launch path looks at this instead of the board's summary while the program holds work of its own, and while a
// query may meet a marker of ours.
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
  if (IsDevice(device)) attached_.fetch_or(std::uint64_t{1} << device);
  if (!agent_.Start()) {
    Warn("this process runs unscheduled: the system has no thread left; raise its limit of processes");
    return;
  }
  agent_.WaitForFirstAttempt(kFirstAttemptMs);
}

// ---- completion ----------------------------------------------------------------------------------------------------

void Client::SyncBegin(Sync* sync, SyncScope scope, void* object) {
  auto& carried = Make<CarriedSync>(sync->core);
  carried.tracker = nullptr;
  carried.implicit = 0;
  if (scope == SyncScope::kImplicit) {
    for (std::uint32_t slot = 0; slot < abi::kMaxDevices; ++slot) {
      DeviceTracker* tracker = trackers_[slot].load(std::memory_order_acquire);
      if (tracker == nullptr) continue;
      tracker->BeginImplicitSync();
      carried.implicit |= std::uint64_t{1} << slot;
    }
    return;
  }
  if (scope == SyncScope::kEvent || scope == SyncScope::kEventQuery) {
    for (const auto& entry : trackers_) {
      DeviceTracker* tracker = entry.load(std::memory_order_acquire);
      if (tracker == nullptr) continue;
      const Snapshot snapshot = tracker->BeginEventSync(object, scope == SyncScope::kEventQuery);
      if (snapshot.epoch == 0) continue;
      carried = CarriedSync{tracker, snapshot, 0, 0};
      return;
    }
    return;
  }
  const int device = scope == SyncScope::kDevice ? stub_.vendor->current_device() : DeviceOf(object);
  if (!IsDevice(device)) return;
  DeviceTracker* tracker = ExistingTracker(device);
  if (tracker == nullptr) return;
  const StreamKey key = scope == SyncScope::kDevice ? StreamKey{} : KeyOf(object);
  const std::uint64_t now = scope == SyncScope::kQuery ? MonotonicNs() : 0;
  carried = CarriedSync{tracker, tracker->BeginSync(scope, key), now, 0};
}

void Client::SyncEnd(Sync* sync, bool ok) {
  const auto carried = Last<CarriedSync>(sync->core);
  for (std::uint64_t left = carried->implicit; left != 0; left &= left - 1)
    trackers_[static_cast<std::size_t>(std::countr_zero(left))].load(std::memory_order_acquire)->EndImplicitSync(ok);
  if (carried->tracker != nullptr) carried->tracker->EndSync(carried->snapshot, ok);
  if (meets_markers_.load(std::memory_order_relaxed)) LookForMarkers(MonotonicNs());
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
  if (!IsDevice(device)) return;
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

int Client::DeviceOfNew(void* stream) {
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

StreamKey Client::KeyOfThread(void* stream) {
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

void Client::AttachNew(int device) {
  const std::uint64_t bit = std::uint64_t{1} << device;
  // relaxed: a set that only grows.
  if ((attached_.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
  if (session_.load(std::memory_order_acquire) != nullptr) AwaitWordUntil(MonotonicNs() + kFirstWordNs);
  agent_.DevicesChanged();
}

DeviceTracker* Client::MakeTracker(int device) {
  auto& entry = trackers_[static_cast<std::size_t>(device)];
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
  if (!IsDevice(device)) return;
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
  if (!IsDevice(device)) return;
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
  PointSummaryLocked();
}

void Client::PointSummaryLocked() {
  const Session* session = session_.load(std::memory_order_acquire);
  stub_.set_summary(HasGivenUp()                                     ? nullptr
                    : own_holds_.Any() || stream_gate_.IsOn()        ? &kLook
                    : meets_markers_.load(std::memory_order_relaxed) ? &kLook
                    : session != nullptr && AwaitsWordUntilNs() != 0 ? &kLook
                    : session != nullptr                             ? session->Board().SummaryWord()
                                                                     : nullptr);
}

void Client::MayMeetMarkers() {
  const std::lock_guard lock(summary_mutex_);
  meets_markers_.store(true, std::memory_order_relaxed);
  PointSummaryLocked();
}

void Client::LookForMarkers(std::uint64_t now_ns) {
  const Session* const session = session_.load(std::memory_order_acquire);
  // relaxed: as a launch reads it. Whoever is counted meanwhile says so once more.
  if (session != nullptr && session->Board().SummaryWord()->load(std::memory_order_relaxed) != 0) return;
  const std::lock_guard lock(summary_mutex_);
  // In this order, with the trackers' locks in between: a launch that was counted is seen there, or sees this.
  meets_markers_.store(false, std::memory_order_relaxed);
  if (HasOwnMarkers(now_ns)) meets_markers_.store(true, std::memory_order_relaxed);
  PointSummaryLocked();
}

void Client::AwaitWordUntil(std::uint64_t until_ns) {
  word_until_ns_.store(until_ns, std::memory_order_relaxed);
  PointSummary();
}

bool Client::HasOwnMarkers(std::uint64_t now_ns) const {
  return std::any_of(trackers_.begin(), trackers_.end(), [now_ns](const std::atomic<DeviceTracker*>& entry) {
    const DeviceTracker* tracker = entry.load(std::memory_order_acquire);
    return tracker != nullptr && tracker->HasOwnMarkers(now_ns);
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
  LookForMarkers(MonotonicNs());
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
