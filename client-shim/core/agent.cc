#include "client-shim/core/agent.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "client-shim/core/client.h"
#include "client-shim/core/clock_offset.h"
#include "client-shim/core/connection.h"
#include "client-shim/core/own_scheduling.h"
#include "client-shim/core/seccomp.h"
#include "common/clock.h"

namespace xschedd::shim {
namespace {

constexpr std::size_t kStackSize = std::size_t{1024} * 1024;  // the runtime's calls need more than ours
constexpr int kConnectTimeoutMs = 1000;
constexpr std::uint64_t kFirstBackoffNs = 20'000'000;
constexpr std::uint64_t kLongestBackoffNs = 1'000'000'000;
// How long a session whose daemon has gone is kept: a daemon that is restarted is back long before, brings the same
// memory, and finds the levels in it right. Its gates bind meanwhile as far as their lease does.
constexpr std::uint64_t kKeptNs = 3'000'000'000;
// For so long after the end of a session the daemon is sought every kFirstBackoffNs.
constexpr std::uint64_t kHurryNs = 5'000'000'000;
constexpr std::uint64_t kRefusedBackoffNs = 5'000'000'000;
constexpr std::uint64_t kOtherVersionBackoffNs = 30'000'000'000;
// How long a new session counts everything while no welcome comes.
constexpr std::uint64_t kWelcomeNs = 1'000'000'000;
// How often a busy session is renewed: some earlier than the daemon must hear of it.
constexpr std::uint64_t kRenewEachNs = abi::kRenewNs * 4 / 5;
constexpr std::size_t kMaxOutbox = 4096;
constexpr std::uint64_t kNever = DeviceTracker::kNever;

}  // namespace

bool Agent::Start() {
  // The thread inherits a mask that blocks everything but what the thread itself can cause: a program that answers
  // filtered system calls (SIGSYS) or reports crashes does so for ours as well; blocked, such a signal ends the
  // process. The host's own thread has the mask only for this moment.
  sigset_t most;
  sigset_t before;
  sigfillset(&most);
  for (const int own : {SIGSYS, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP})
    sigdelset(&most, own);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackSize);
  pthread_sigmask(SIG_SETMASK, &most, &before);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, &Agent::Run, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error != 0) return false;
  pthread_detach(thread);
  return true;
}

void Agent::WaitForFirstAttempt(int timeout_ms) {
  std::unique_lock lock(mutex_);
  first_attempt_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [&] { return first_attempt_done_; });
}

// ---- from any thread -----------------------------------------------------------------------------------------------

void Agent::Post(OutgoingMessage message) {
  const std::lock_guard lock(mutex_);
  if (outbox_.size() >= kMaxOutbox) return;
  outbox_.push_back(std::move(message));
  is_notified_ = true;
  wake_.notify_one();
}

void Agent::StartWatching() {
  if (!is_watching_.exchange(true, std::memory_order_seq_cst)) Notify();
}

void Agent::BusyReported() {
  // seq_cst: the agent clears the flag and then asks the ledger once more; the level was set before we look at the
  // flag.
  if (!is_renewing_.load(std::memory_order_seq_cst) && !is_renewing_.exchange(true, std::memory_order_seq_cst))
    Notify();
}

void Agent::DevicesChanged() {
  Notify();
}

void Agent::Deliver(unsigned stream, IncomingMessage message) {
  const std::lock_guard lock(mutex_);
  if (stream != stream_number_) return;
  inbox_.push_back(std::move(message));
  is_notified_ = true;
  wake_.notify_one();
}

void Agent::WaitUntilOutOfRuntime() const {
  // The exit of the process must not wait for long: a call of ours takes microseconds.
  for (int i = 0; i < 50 && is_in_runtime_.load(std::memory_order_seq_cst); ++i) {
    const timespec nap{0, 100'000};
    ::nanosleep(&nap, nullptr);
  }
}

void Agent::Notify() {
  const std::lock_guard lock(mutex_);
  is_notified_ = true;
  wake_.notify_one();
}

// ---- the thread ----------------------------------------------------------------------------------------------------

void* Agent::Run(void* self) {
  // Where a filter forbids what is to come, Connect says so and nothing more is tried.
  if (ForbiddenByFilter().empty()) {
    pthread_setname_np(pthread_self(), "xschedd-agent");
    // Sleeps of tens of microseconds are to be that long; the default slack is another 50.
    prctl(PR_SET_TIMERSLACK, 1000);
    LeaveTheMakersScheduling();
  }
  auto* agent = static_cast<Agent*>(self);
  try {
    agent->InRuntime([&] { agent->client_->GetVendor().adopt_thread(); });
    agent->Loop();
  } catch (...) {
    agent->client_->GiveUp();
    agent->EndSession();
    agent->KeepSlices(MonotonicNs());
  }
  return nullptr;
}

void Agent::Loop() {
  while (!client_->HasGivenUp()) {
    if (stream_ == nullptr && MonotonicNs() >= next_attempt_ns_) Connect();

    std::vector<IncomingMessage> inbox;
    {
      const std::lock_guard lock(mutex_);
      first_attempt_done_ = true;
      inbox.swap(inbox_);
      is_notified_ = false;
    }
    first_attempt_.notify_all();
    for (const IncomingMessage& message : inbox)
      Handle(message);
    std::erase_if(ended_streams_, [](const std::unique_ptr<GrpcStream>& stream) { return stream->IsDone(); });
    SendDevices();
    SendMessages();

    std::uint64_t now = MonotonicNs();
    std::uint64_t until = stream_ == nullptr ? next_attempt_ns_ : kNever;
    if (const std::uint64_t word_until = client_->AwaitsWordUntilNs(); word_until != 0) {
      if (now >= word_until) {
        client_->AwaitWordUntil(0);
      } else {
        until = std::min(until, word_until);
      }
    }
    if (kept_until_ns_ != 0) {
      if (now >= kept_until_ns_) EndSession();
      until = std::min(until, kept_until_ns_ != 0 ? kept_until_ns_ : kNever);
    }
    if (is_watching_.load(std::memory_order_relaxed)) {
      has_activity_ = true;
      std::uint64_t look_ns = Watch(now);
      if (look_ns == kNever) {
        is_watching_.store(false, std::memory_order_seq_cst);
        // Once more: see WorkSubmitted.
        look_ns = Watch(now);
        if (look_ns != kNever) is_watching_.store(true, std::memory_order_seq_cst);
      }
      until = std::min(until, look_ns);
    }
    until = std::min({until, RenewBusy(now), KeepSlices(now)});
    if (stream_ != nullptr && activity_interval_ns_ != 0 && has_activity_) {
      if (now >= next_activity_ns_) SendActivity(now);
      if (has_activity_) until = std::min(until, next_activity_ns_);
    }
    if (stream_ != nullptr && !session_->IsAlive() && !client_->HasGivenUp()) {
      stream_->Cancel();
      DropSession(EndMessage{"the daemon cannot be woken", false});
      continue;
    }
    Sleep(until);
  }
  EndSession();
  KeepSlices(MonotonicNs());
  // The daemon must not go on waiting for a client that it cannot hold.
  if (stream_ != nullptr) stream_->Cancel();
}

std::uint64_t Agent::RenewBusy(std::uint64_t now_ns) {
  if (!is_renewing_.load(std::memory_order_seq_cst)) return kNever;
  const std::uint64_t due_ns = renewed_ns_ + kRenewEachNs;
  if (now_ns < due_ns) return due_ns;
  is_renewing_.store(false, std::memory_order_seq_cst);
  // Also where the session is kept without a stream: its memory may be the next daemon's.
  const bool stood_still = was_busy_ && now_ns > due_ns + abi::kRenewNs;
  was_busy_ = session_ != nullptr && session_->IsAlive() && session_->Ledger().IsAnyBusy();
  if (!was_busy_) return kNever;
  is_renewing_.store(true, std::memory_order_seq_cst);
  session_->Ledger().Renew();
  // The daemon may have given this process up, and is to count it again at once.
  if (stood_still) session_->Ledger().WakeDaemon();
  renewed_ns_ = now_ns;
  return now_ns + kRenewEachNs;
}

std::uint64_t Agent::KeepSlices(std::uint64_t now_ns) {
  const bool busy = is_renewing_.load(std::memory_order_relaxed);
  const std::uint32_t wanted_us = WantedSliceUs(now_ns);
  if (now_ns < slices_due_ns_ && busy == slices_busy_ && wanted_us == slices_wanted_us_) return slices_due_ns_;
  slices_busy_ = busy;
  slices_wanted_us_ = wanted_us;
  slices_due_ns_ = kNever;
  const std::uint64_t slots = session_ != nullptr && session_->IsAlive() ? client_->AttachedDevices() : 0;
  SliceKeeper::Work work{.busy = busy};
  for (std::uint64_t left = slots; left != 0; left &= left - 1) {
    const auto slot = static_cast<std::uint32_t>(std::countr_zero(left));
    const abi::LedgerDevice& device = session_->Ledger().Device(slot);
    // relaxed: this process's own counts, and one that is behind is seen at the next look.
    work.devices[slot] = {device.in_flight.load(std::memory_order_relaxed) != 0,
                          device.completed.load(std::memory_order_relaxed)};
  }
  // What it calls ends with the runtime.
  InRuntime([&] { slices_due_ns_ = slices_.Look(wanted_us, work, now_ns); });
  if (busy) slices_due_ns_ = std::min(slices_due_ns_, renewed_ns_ + kRenewEachNs);
  for (std::uint64_t left = slots; left != 0; left &= left - 1)
    session_->Ledger().SetSlice(static_cast<std::uint32_t>(std::countr_zero(left)), slices_.State(), slices_.Us());
  if (slices_.State() == abi::SliceState::kStalled && !told_stall_) {
    told_stall_ = true;
    Info(
        "time slices: withheld for a while: no work ended for a second with a short one; if the device is busy with "
        "several processes, time_slices = \"off\" in the daemon's [device] ends these seconds");
  }
  const bool is_missing = slices_.State() == abi::SliceState::kNotHere || slices_.State() == abi::SliceState::kRefused;
  // That the vendor has none is in its documents, and no news of this process.
  if (is_missing && slices_.HasLever() && !told_slices_) {
    told_slices_ = true;
    Info(slices_.State() == abi::SliceState::kRefused
             ? "time slices: not there: the driver refuses them"
             : "time slices: not there: no channel group of this process is known (a client of MPS, or a driver that "
               "makes them in another way)");
  }
  return slices_due_ns_;
}

std::uint32_t Agent::WantedSliceUs(std::uint64_t now_ns) const {
  if (session_ == nullptr || !session_->IsAlive() || client_->HasGivenUp()) return 0;
  // Of a daemon that is stopped, as of one that has gone. One that is restarted is back sooner, and wants the same.
  if (now_ns >= session_->LeaseUntilNs() + kKeptNs) return 0;
  std::uint32_t least = 0;
  for (std::uint64_t left = client_->AttachedDevices(); left != 0; left &= left - 1) {
    const auto slot = static_cast<std::uint32_t>(std::countr_zero(left));
    const bool counts = (session_->Board().Word(slot) & abi::kFlagMask) != 0;
    const std::uint32_t us = counts ? session_->Board().SliceUs(slot) : 0;
    if (us != 0 && (least == 0 || us < least)) least = us;
  }
  return least;
}

std::uint64_t Agent::Watch(std::uint64_t now_ns) {
  std::uint64_t look_ns = kNever;
  InRuntime([&] { look_ns = client_->TickTrackers(now_ns); });
  return look_ns;
}

// All that calls the runtime on the agent's thread does so in here; nothing does once the process exits.
template <typename Body>
void Agent::InRuntime(Body body) {
  // seq_cst, both: either we see that the process exits, or the exiting thread sees us in here.
  is_in_runtime_.store(true, std::memory_order_seq_cst);
  if (!client_->IsExiting()) body();
  is_in_runtime_.store(false, std::memory_order_seq_cst);
}

void Agent::Sleep(std::uint64_t until_ns) {
  std::unique_lock lock(mutex_);
  if (is_notified_) return;
  if (until_ns == kNever) {
    wake_.wait(lock, [&] { return is_notified_; });
    return;
  }
  const std::uint64_t now = MonotonicNs();
  if (until_ns > now) wake_.wait_for(lock, std::chrono::nanoseconds(until_ns - now));
}

// ---- session -------------------------------------------------------------------------------------------------------

void Agent::Connect() {
  // Each time: a filter may have come since the last.
  if (const std::string forbidden = ForbiddenByFilter(); !forbidden.empty()) {
    Warn("this process runs unscheduled: its seccomp filter " + forbidden +
         "; allow the sockets, epoll and threads of a gRPC client");
    client_->GiveUp();
    return;
  }
  auto connection = ConnectToDaemon(kConnectTimeoutMs, &eventfd_, session_, client_->PublishedSession(), &sessions_);
  if (!connection) {
    const ConnectError& failure = connection.error();
    if (failure.is_refusal) {
      if (!told_refusal_) Warn("this process runs unscheduled: " + failure.error.Line());
      told_refusal_ = true;
      backoff_ns_ = failure.is_for_long ? kOtherVersionBackoffNs : kRefusedBackoffNs;
      if (kept_until_ns_ != 0) EndSession();
    } else {
      if (backoff_ns_ == 0) Info("this process runs unscheduled: " + failure.error.Line());
      BackOff();
    }
    next_attempt_ns_ = MonotonicNs() + backoff_ns_;
    return;
  }
  if (!StartStream(std::move(connection->socket))) return;
  connection->session->OnBusy([this] { BusyReported(); });
  session_ = connection->session;
  kept_until_ns_ = 0;
  slices_due_ns_ = 0;
  if (session_ != client_->PublishedSession()) client_->AwaitWordUntil(MonotonicNs() + kWelcomeNs);
  client_->BeginSession(session_);
  Greet(connection->token);
}

bool Agent::StartStream(UniqueFd socket) {
  if (grpc_thread_ == nullptr) grpc_thread_ = GrpcThread::Start();
  if (grpc_thread_ == nullptr) {
    if (!told_refusal_) {
      Warn(
          "this process runs unscheduled: no thread or descriptor is left for the connection; raise the limits of "
          "processes and of open files (ulimit -u, -n)");
    }
    told_refusal_ = true;
    backoff_ns_ = kRefusedBackoffNs;
    next_attempt_ns_ = MonotonicNs() + backoff_ns_;
    return false;
  }
  unsigned number = 0;
  {
    // What was posted before this session is not of this session; what lasts is told again in Greet.
    const std::lock_guard lock(mutex_);
    outbox_.clear();
    inbox_.clear();
    number = ++stream_number_;
  }
  stream_ = GrpcStream::Make(grpc_thread_, std::move(socket),
                             [this, number](IncomingMessage message) { Deliver(number, std::move(message)); });
  if (stream_ != nullptr) return true;
  Warn(
      "this process runs unscheduled from here on: it has closed descriptors that are not its own; let it close them "
      "before it uses the GPU");
  client_->GiveUp();
  return false;
}

void Agent::Greet(const std::string& token) {
  const Vendor& vendor = client_->GetVendor();
  greeted_ns_ = MonotonicNs();
  stream_->Send(HelloMessage{token, client_->GetEnvironment().group, client_->PriorityHint(), vendor.runtime,
                             vendor.route, client_->WeightHint(), client_->DeadlineHint(),
                             client_->GetEnvironment().latency});
  devices_told_ = 0;
  SendDevices();
  told_queues_.clear();
  for (const QueueCreatedMessage& queue : client_->LiveQueues()) {
    told_queues_.insert(queue.queue);
    stream_->Send(queue);
  }
}

void Agent::SendDevices() {
  if (stream_ == nullptr) return;
  const std::uint64_t attached = client_->AttachedDevices();
  const Vendor& vendor = client_->GetVendor();
  for (std::uint32_t slot = 0; slot < abi::kMaxDevices; ++slot) {
    const std::uint64_t bit = std::uint64_t{1} << slot;
    if ((attached & ~devices_told_ & bit) == 0) continue;
    devices_told_ |= bit;
    const int device = static_cast<int>(slot);
    char text[256] = "";
    DeviceMessage message;
    message.slot = slot;
    message.vendor = vendor.vendor;
    InRuntime([&] {
      if (vendor.pci_address(device, text, sizeof text)) message.pci_address = text;
      if (vendor.device_name(device, text, sizeof text)) message.name = text;
      message.compute_units = vendor.compute_units(device);
      if (vendor.device_uuid(device, text, sizeof text)) message.uuid = text;
      stream_->Send(message);
    });
  }
}

void Agent::SendMessages() {
  std::vector<OutgoingMessage> outbox;
  {
    const std::lock_guard lock(mutex_);
    outbox.swap(outbox_);
  }
  if (stream_ == nullptr) return;
  for (const OutgoingMessage& message : outbox) {
    if (IsNews(message)) stream_->Send(message);
  }
}

// A stream that comes or goes while the daemon is greeted is in both, or in neither, of what it is told and the outbox.
bool Agent::IsNews(const OutgoingMessage& message) {
  if (const auto* created = std::get_if<QueueCreatedMessage>(&message))
    return told_queues_.insert(created->queue).second;
  if (const auto* destroyed = std::get_if<QueueDestroyedMessage>(&message))
    return told_queues_.erase(destroyed->queue) != 0;
  return true;
}

void Agent::SendActivity(std::uint64_t now_ns) {
  next_activity_ns_ = now_ns + activity_interval_ns_;
  ActivityMessage activity = client_->TakeActivity();
  const bool is_empty = activity.queues.empty() && activity.passed.empty();
  has_activity_ = !is_empty || is_watching_.load(std::memory_order_relaxed);
  if (is_empty) return;
  activity.time_ns = now_ns;
  stream_->Send(activity);
}

void Agent::Handle(const IncomingMessage& message) {
  const auto configure = [this](const SessionConfiguration& configuration) {
    activity_interval_ns_ = std::uint64_t{configuration.activity_interval_ms} * 1'000'000;
    client_->SetPassthrough(configuration.passthrough);
  };
  if (const auto* welcome = std::get_if<WelcomeMessage>(&message)) {
    backoff_ns_ = 0;
    told_refusal_ = false;
    session_->SetClockOffset(ClockOffset(welcome->monotonic_ns, greeted_ns_, MonotonicNs()));
    client_->SetDescription(welcome->client_id, welcome->effective_priority);
    if (client_->AwaitsWordUntilNs() != 0) client_->AwaitWordUntil(MonotonicNs() + Client::kFirstWordNs);
    configure(welcome->configuration);
    Info("scheduled as client " + std::to_string(welcome->client_id) + " at priority " +
         std::to_string(welcome->effective_priority));
  } else if (const auto* notice = std::get_if<NoticeMessage>(&message)) {
    Warn(notice->text);
  } else if (const auto* configuration = std::get_if<SessionConfiguration>(&message)) {
    configure(*configuration);
  } else if (const auto* end = std::get_if<EndMessage>(&message)) {
    DropSession(*end);
  }
}

void Agent::DropSession(const EndMessage& end) {
  if (stream_ == nullptr) return;
  ended_streams_.push_back(std::move(stream_));
  const std::uint64_t now = MonotonicNs();
  if (end.is_refusal || !session_->IsAlive()) {
    EndSession();
  } else {
    kept_until_ns_ = now + kKeptNs;
  }
  const std::string reason = end.reason.empty() ? "the daemon closed the session" : end.reason;
  if (end.is_refusal) {
    if (!told_refusal_) Warn("this process runs unscheduled: " + reason);
    told_refusal_ = true;
    backoff_ns_ = kRefusedBackoffNs;
  } else {
    Info("this process runs unscheduled for now: " + reason);
    // Not anew for one that never came to a welcome.
    if (backoff_ns_ == 0) hurry_until_ns_ = now + kHurryNs;
    BackOff();
  }
  next_attempt_ns_ = now + backoff_ns_;
}

void Agent::EndSession() {
  kept_until_ns_ = 0;
  slices_due_ns_ = 0;
  client_->EndSession();
}

void Agent::BackOff() {
  const bool is_first = backoff_ns_ == 0 || MonotonicNs() < hurry_until_ns_;
  backoff_ns_ = is_first ? kFirstBackoffNs : std::min(backoff_ns_ * 2, kLongestBackoffNs);
}

}  // namespace xschedd::shim
