// The agent's side of the session: finding the daemon, what is sent and received, and what happens when the daemon
// goes.
#include <algorithm>
#include <utility>

#include "client-shim/core/agent.h"
#include "client-shim/core/client.h"
#include "client-shim/core/clock_offset.h"
#include "client-shim/core/connection.h"
#include "client-shim/core/seccomp.h"
#include "common/clock.h"

namespace xschedd::shim {
namespace {

constexpr int kConnectTimeoutMs = 1000;
constexpr std::uint64_t kFirstBackoffNs = 20'000'000;
constexpr std::uint64_t kLongestBackoffNs = 1'000'000'000;
// How long after the end of a session the agent tries every kFirstBackoffNs: a restarted daemon is back soon.
constexpr std::uint64_t kFastRetryNs = 5'000'000'000;
constexpr std::uint64_t kRefusedBackoffNs = 5'000'000'000;
constexpr std::uint64_t kOtherVersionBackoffNs = 30'000'000'000;
// How long a new session counts everything while it waits for the daemon's welcome.
constexpr std::uint64_t kWelcomeTimeoutNs = 1'000'000'000;

}  // namespace

void Agent::Connect() {
  // At each attempt: a filter may have been installed since the last.
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
      if (!reported_refusal_) Warn("this process runs unscheduled: " + failure.error.Line());
      reported_refusal_ = true;
      backoff_ns_ = failure.is_for_long ? kOtherVersionBackoffNs : kRefusedBackoffNs;
      if (session_kept_until_ns_ != 0) EndSession();
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
  session_kept_until_ns_ = 0;
  slices_due_ns_ = 0;
  reported_queue_priorities_ = {};
  if (session_ != client_->PublishedSession()) client_->AwaitDecisionUntil(MonotonicNs() + kWelcomeTimeoutNs);
  client_->BeginSession(session_);
  SendHello(connection->token);
}

bool Agent::StartStream(UniqueFd socket) {
  if (grpc_thread_ == nullptr) grpc_thread_ = GrpcThread::Start();
  if (grpc_thread_ == nullptr) {
    if (!reported_refusal_) {
      Warn(
          "this process runs unscheduled: no thread or descriptor is left for the connection; raise the limits of "
          "processes and of open files (ulimit -u, -n)");
    }
    reported_refusal_ = true;
    backoff_ns_ = kRefusedBackoffNs;
    next_attempt_ns_ = MonotonicNs() + backoff_ns_;
    return false;
  }
  unsigned number = 0;
  {
    // What was delivered before does not belong to this session.
    const std::lock_guard lock(mutex_);
    inbox_.clear();
    number = ++stream_number_;
  }
  stream_ = GrpcStream::Make(grpc_thread_, std::move(socket),
                             [this, number](IncomingMessage message) { Deliver(number, std::move(message)); });
  if (stream_ != nullptr) return true;
  Warn(
      "this process runs unscheduled from now on: it has closed file descriptors that it did not open; make it close "
      "them before it uses the GPU");
  client_->GiveUp();
  return false;
}

void Agent::SendHello(const std::string& token) {
  const Vendor& vendor = client_->GetVendor();
  hello_sent_ns_ = MonotonicNs();
  const ProcessHints hints = client_->Requests().ToTell();
  stream_->Send(HelloMessage{token, client_->GetEnvironment().group, hints.priority, vendor.runtime, vendor.route,
                             hints.weight, hints.deadline_us, client_->GetEnvironment().latency,
                             client_->GetEnvironment().memory_bytes});
  reported_devices_ = 0;
  SendDevices();
  reports_.Begin(hints);
  queues_due_ = {StateReports::kDefaultQueue};
  for (const auto& queues : {reports_.Known(), client_->LiveQueues()})
    queues_due_.insert(queues.begin(), queues.end());
}

void Agent::SendDevices() {
  if (stream_ == nullptr) return;
  const std::uint64_t attached = client_->AttachedDevices();
  const Vendor& vendor = client_->GetVendor();
  for (std::uint32_t slot = 0; slot < abi::kMaxDevices; ++slot) {
    const std::uint64_t bit = std::uint64_t{1} << slot;
    if ((attached & ~reported_devices_ & bit) == 0) continue;
    reported_devices_ |= bit;
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
      message.is_under_mps = vendor.is_under_mps != nullptr && vendor.is_under_mps(device);
      stream_->Send(message);
    });
  }
}

void Agent::SendChanges() {
  {
    const std::lock_guard lock(mutex_);
    hints_due_ |= std::exchange(hints_changed_, false);
    queues_due_.merge(changed_queues_);
    changed_queues_.clear();
  }
  if (stream_ == nullptr) {
    queues_due_.clear();
    return;
  }
  if (hints_due_ && stream_->HasRoom()) {
    hints_due_ = false;
    if (const auto hint = reports_.UpdateHints(client_->Requests().ToTell())) stream_->Send(*hint);
  }
  while (!queues_due_.empty() && stream_->HasRoom()) {
    const std::uint64_t queue = *queues_due_.begin();
    queues_due_.erase(queues_due_.begin());
    for (const OutgoingMessage& message : reports_.UpdateQueue(queue, client_->QueueNow(queue)))
      stream_->Send(message);
  }
}

void Agent::SendActivity(std::uint64_t now_ns) {
  next_activity_ns_ = now_ns + activity_interval_ns_;
  if (!stream_->HasRoom()) return;
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
    wanted_queue_priority_ = configuration.queue_priority;
    queue_priority_due_ns_ = 0;
  };
  if (const auto* welcome = std::get_if<WelcomeMessage>(&message)) {
    backoff_ns_ = 0;
    reported_refusal_ = false;
    session_->SetClockOffset(ClockOffset(welcome->monotonic_ns, hello_sent_ns_, MonotonicNs()));
    client_->SetDescription(welcome->client_id, welcome->effective_priority);
    if (client_->AwaitsDecisionUntilNs() != 0) client_->AwaitDecisionUntil(MonotonicNs() + Client::kFirstDecisionNs);
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
    session_kept_until_ns_ = now + kKeepSessionNs;
  }
  const std::string reason = end.reason.empty() ? "the daemon closed the session" : end.reason;
  if (end.is_refusal) {
    if (!reported_refusal_) Warn("this process runs unscheduled: " + reason);
    reported_refusal_ = true;
    backoff_ns_ = kRefusedBackoffNs;
  } else {
    Info("this process runs unscheduled for now: " + reason);
    // Only for a session that had its welcome, which sets the backoff to 0.
    if (backoff_ns_ == 0) fast_retry_until_ns_ = now + kFastRetryNs;
    BackOff();
  }
  next_attempt_ns_ = now + backoff_ns_;
}

void Agent::EndSession() {
  session_kept_until_ns_ = 0;
  slices_due_ns_ = 0;
  client_->EndSession();
}

void Agent::BackOff() {
  const bool is_first = backoff_ns_ == 0 || MonotonicNs() < fast_retry_until_ns_;
  backoff_ns_ = is_first ? kFirstBackoffNs : std::min(backoff_ns_ * 2, kLongestBackoffNs);
}

}  // namespace xschedd::shim
