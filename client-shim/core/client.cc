#include "client-shim/core/client.h"

#include <pthread.h>

#include <algorithm>

#include "client-shim/core/session_status.h"
#include "client-shim/core/working_thread.h"
#include "common/clock.h"

namespace xschedd::shim {
namespace {

// How long the first GPU call of a process waits for its session. A running daemon answers in a few milliseconds; that
// there is none is known at once.
constexpr int kFirstAttemptMs = 100;

// How long an allocation waits for a daemon that has given the session's memory and has not yet sent its welcome.
constexpr std::uint64_t kLongestWelcomeNs = 100'000'000;

// The launch path reads this in place of the board's summary where calls must take the slow path whatever the gates
// say.
const abi::Word kSlowPath{1};

Environment ReadEnvironment(const StubTable& stub) {
  Environment environment = Environment::Read();
  if (stub.group != nullptr && *stub.group != '\0') environment.group = stub.group;
  return environment;
}

}  // namespace

Client::Client(const StubTable& stub)
    : stub_(stub),
      environment_(ReadEnvironment(stub)),
      requests_(environment_, this),
      schedules_streams_(environment_.schedules_streams),
      trackers_(stub.vendor, &captures_, &requests_.DeadlinesSet(), &streams_),
      passthrough_(environment_.passthrough, stub),
      memory_([this](std::uint32_t slot, const MemoryUse& use) {
        const SessionUse session(session_);
        if (session.Get() != nullptr) session.Get()->Ledger().SetMemory(slot, use.Bytes(), use.refused);
      }),
      agent_(this, *stub.vendor) {
  // relaxed: nobody else sees this object yet.
  attached_.store(stub.devices_seen, std::memory_order_relaxed);
}

void Client::Start() {
  const int device = stub_.vendor->current_device();
  // relaxed: a set that only grows.
  if (IsDevice(device)) attached_.fetch_or(std::uint64_t{1} << device, std::memory_order_relaxed);
  if (!agent_.Start()) {
    Warn("this process runs unscheduled: the system has no thread left; raise its limit of processes");
    return;
  }
  agent_.WaitForFirstAttempt(kFirstAttemptMs);
}

// ---- streams and devices -------------------------------------------------------------------------------------------

int Client::DeviceOfNew(void* stream) {
  if (const std::optional<int> known = streams_.DeviceOf(stream)) return *known;
  const int device = stub_.vendor->device_of_stream(stream);
  if (device >= 0) streams_.Add(stream, StreamInfo{device, 0, 0, false});
  return device;
}

StreamKey Client::KeyOfThread(void* stream) {
  thread_local const WorkingThread thread(this);
  return StreamKey{stream, thread.Number()};
}

void Client::ThreadEnded(std::uint64_t thread) {
  // In a child of fork, threads that no longer exist may hold locks.
  if (is_forked_.load(std::memory_order_relaxed)) return;
  int cancel_state = 0;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  try {
    trackers_.ForEach([thread](std::uint32_t, DeviceTracker& tracker) { tracker.ForgetThread(thread); });
  } catch (...) {
    GiveUp();
  }
  ::pthread_setcancelstate(cancel_state, nullptr);
}

void Client::AttachNew(int device) {
  const std::uint64_t bit = std::uint64_t{1} << device;
  // relaxed: a set that only grows.
  if ((attached_.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
  if (session_.load(std::memory_order_acquire) != nullptr) AwaitDecisionUntil(MonotonicNs() + kFirstDecisionNs);
  agent_.DevicesChanged();
}

void Client::StreamCreated(void* stream, int priority, unsigned flags) {
  const int device = stub_.vendor->current_device();
  if (!IsDevice(device)) return;
  streams_.Add(stream, StreamInfo{device, priority, flags, true});
  trackers_.NoteStream(device, stream, flags);
  OrderStreams();
  Attach(device);
  agent_.QueueChanged(QueueId({stream, 0}));
}

void Client::StreamDestroying(void* stream) {
  captures_.End(stream);
  requests_.ForgetStream(stream);
  const std::optional<StreamInfo> info = streams_.Remove(stream);
  OrderStreams();
  if (!info) return;
  if (DeviceTracker* tracker = trackers_.Existing(info->device)) tracker->ForgetStream(stream);
  if (info->was_seen_made) agent_.QueueChanged(QueueId({stream, 0}));
}

void Client::DeviceReset() {
  const int device = stub_.vendor->current_device();
  if (!IsDevice(device)) return;
  for (void* stream : streams_.RemoveDevice(device)) {
    captures_.End(stream);
    agent_.QueueChanged(QueueId({stream, 0}));
  }
  OrderStreams();
  if (DeviceTracker* tracker = trackers_.Existing(device)) tracker->ForgetDevice();
}

void Client::CaptureBegun(void* stream) {
  trackers_.ForEach([](std::uint32_t, DeviceTracker& tracker) { tracker.PrepareForCapture(); });
  captures_.Begin(stream);
}

// ---- session -------------------------------------------------------------------------------------------------------

void Client::BeginSession(Session* session) {
  // A session that was kept simply continues.
  if (Session* const before = session_.load(std::memory_order_acquire); before != session) {
    trackers_.Begin(session);
    welcome_until_ns_.store(MonotonicNs() + kLongestWelcomeNs, std::memory_order_relaxed);
    // The session is complete. seq_cst: see SessionUse.
    session_.store(session, std::memory_order_seq_cst);
    if (before != nullptr) before->End();
    memory_.Publish();
  }
  PointSummary();
}

void Client::PointSummary() {
  const std::lock_guard lock(summary_mutex_);
  PointSummaryLocked();
}

void Client::PointSummaryLocked() {
  const Session* session = session_.load(std::memory_order_acquire);
  // relaxed: written under the lock that the caller holds.
  const bool is_slow = requests_.HoldsAny() || stream_gate_.IsOn() ||
                       expects_markers_.load(std::memory_order_relaxed) ||
                       (session != nullptr && AwaitsDecisionUntilNs() != 0);
  stub_.set_summary(HasGivenUp()         ? nullptr
                    : is_slow            ? &kSlowPath
                    : session != nullptr ? session->Board().SummaryWord()
                                         : nullptr);
}

void Client::ExpectMarkers() {
  const std::lock_guard lock(summary_mutex_);
  expects_markers_.store(true, std::memory_order_relaxed);
  PointSummaryLocked();
}

void Client::CheckForMarkers(std::uint64_t now_ns) {
  const Session* const session = session_.load(std::memory_order_acquire);
  // relaxed: while a gate has flags, calls take the slow path anyway, and each launch that does not count checks again.
  if (session != nullptr && session->Board().SummaryWord()->load(std::memory_order_relaxed) != 0) return;
  const std::lock_guard lock(summary_mutex_);
  // relaxed, in this order: HasOwnMarkers takes the trackers' locks, under which a launch is counted before it reads
  // the flag. So the launch is seen there, or it sees the flag cleared.
  expects_markers_.store(false, std::memory_order_relaxed);
  if (trackers_.HasOwnMarkers(now_ns)) expects_markers_.store(true, std::memory_order_relaxed);
  PointSummaryLocked();
}

void Client::AwaitDecisionUntil(std::uint64_t until_ns) {
  decision_until_ns_.store(until_ns, std::memory_order_relaxed);
  PointSummary();
}

void Client::EndSession() {
  decision_until_ns_.store(0, std::memory_order_relaxed);
  client_id_.store(0, std::memory_order_relaxed);
  Session* const session = session_.exchange(nullptr, std::memory_order_seq_cst);
  PointSummary();
  if (session == nullptr) return;
  // Before the session ends, so that trackers report idle: a restarted daemon may read this ledger.
  trackers_.Begin(nullptr);
  session->End();
  CheckForMarkers(MonotonicNs());
}

void Client::GiveUp() {
  // relaxed: whoever comes first ends the session below.
  if (has_given_up_.exchange(true, std::memory_order_relaxed)) return;
  (void)requests_.Release(OwnHolds::kAllDevices);
  stream_gate_.Close();
  PointSummary();
  Session* session = session_.load(std::memory_order_acquire);
  if (session != nullptr) session->End();
  agent_.DevicesChanged();  // wakes the agent, which ends the session
}

void Client::Exiting() {
  is_exiting_.store(true, std::memory_order_seq_cst);
  captures_.ForbidCalls();
  stream_gate_.Close();
  (void)requests_.Release(OwnHolds::kAllDevices);  // the thread that was to release them may be gone
  agent_.WaitUntilOutOfRuntime();
}

void Client::Forked() {
  // No locks: another thread of the parent may have held them. The ledger is shared with the parent; nobody writes to
  // it here, because it is reached only by the session. relaxed: the child has one thread.
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

ActivityMessage Client::TakeActivity() {
  ActivityMessage message;
  message.passed = passthrough_.TakeCounts();
  trackers_.TakeActivity(&message);
  return message;
}

std::vector<std::uint64_t> Client::LiveQueues() const {
  std::vector<std::uint64_t> queues;
  for (const auto& [stream, info] : streams_.All()) {
    if (info.was_seen_made) queues.push_back(QueueId({stream, 0}));
  }
  return queues;
}

std::optional<LiveQueue> Client::QueueNow(std::uint64_t queue) const {
  const Deadlines& deadlines = requests_.DeadlinesSet();
  if (queue == StateReports::kDefaultQueue) {
    const std::uint64_t legacy = deadlines.OfStream(nullptr);
    const std::uint64_t per_thread = deadlines.OfStream(reinterpret_cast<void*>(kPerThreadHandle));
    return LiveQueue{0, {}, legacy == 0 || per_thread == 0 ? legacy + per_thread : std::min(legacy, per_thread)};
  }
  void* const stream = reinterpret_cast<void*>(queue);
  const std::optional<StreamInfo> info = streams_.Find(stream);
  if (!info || !info->was_seen_made) return std::nullopt;
  return LiveQueue{info->number,
                   {queue, static_cast<std::uint32_t>(info->device), info->priority, info->flags},
                   deadlines.OfStream(stream)};
}

// ---- the program's requests and questions --------------------------------------------------------------------------

int Client::CheckSession() const {
  if (HasGivenUp()) return XSCHEDD_ERROR_INERT;
  return session_.load(std::memory_order_acquire) == nullptr ? XSCHEDD_ERROR_NOT_CONNECTED : XSCHEDD_OK;
}

int Client::HintsChanged() {
  const int result = CheckSession();
  if (result == XSCHEDD_OK) agent_.HintsChanged();
  return result;
}

int Client::StreamDeadlineChanged(void* stream) {
  const int result = CheckSession();
  // All default streams are one queue for the daemon, which is not told of threads.
  if (result == XSCHEDD_OK)
    agent_.QueueChanged(IsDefaultStream(stream) ? StateReports::kDefaultQueue : QueueId({stream, 0}));
  return result;
}

void Client::DeadlinesChanged() {
  trackers_.ForEach([](std::uint32_t, DeviceTracker& tracker) { tracker.DeadlinesChanged(); });
}

int Client::GetStatus(xschedd_status* status) {
  const SessionUse use(session_);
  Session* const session = use.Get();
  status->state = HasGivenUp()         ? XSCHEDD_STATE_INERT
                  : session != nullptr ? XSCHEDD_STATE_SCHEDULED
                                       : XSCHEDD_STATE_UNSCHEDULED;
  status->priority_hint = requests_.Priority().OfProcess().value_or(XSCHEDD_PRIORITY_NONE);
  status->weight_hint = requests_.Weight().OfProcess().value_or(XSCHEDD_WEIGHT_NONE);
  status->deadline_us = requests_.DeadlinesSet().OfProcess();
  status->own_held_ns = requests_.HeldNs();
  status->schedules_streams = schedules_streams_.load(std::memory_order_relaxed);
  status->streams_held_ns = stream_gate_.WaitedNs();
  status->devices = AttachedDevices();
  if (session == nullptr) return XSCHEDD_OK;
  status->client_id = client_id_.load(std::memory_order_relaxed);
  status->effective_priority = effective_priority_.load(std::memory_order_relaxed);
  AddCounters(session, status);
  return XSCHEDD_OK;
}

int Client::GetDeviceStatus(int device, xschedd_device_status* status) {
  if (HasGivenUp()) return XSCHEDD_ERROR_INERT;
  const SessionUse use(session_);
  Session* const session = use.Get();
  if (session == nullptr) return XSCHEDD_ERROR_NOT_CONNECTED;
  ReadDevice(session, static_cast<std::uint32_t>(device), MonotonicNs(), status);
  return XSCHEDD_OK;
}

}  // namespace xschedd::shim
