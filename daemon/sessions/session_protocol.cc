#include "daemon/sessions/session_protocol.h"

#include <algorithm>
#include <tuple>

#include "common/clock.h"
#include "daemon/build_config.h"
#include "daemon/registry/effective.h"
#include "daemon/registry/effective_words.h"
#include "daemon/registry/limits.h"
#include "daemon/scheduler/queue_priority_words.h"
#include "daemon/sessions/activity.h"
#include "daemon/sessions/introduction.h"

namespace xschedd {
namespace {

constexpr std::size_t kLargeMessage = 2'048;
// Roughly what the daemon keeps for a client besides its texts, and the most charged for both.
constexpr std::size_t kClientBytes = 2'048;
constexpr std::size_t kMaxClientTextBytes = 6'144;
constexpr std::uint64_t kMaxCheckNs = 2 * policy::kNsPerMs;  // anything longer was an interruption
constexpr std::uint64_t kSlowNoticeNs = 60 * policy::kNsPerS;

}  // namespace

void SessionProtocol::Begin() {
  connection_ = host_.connections.Find(peer_, is_admin_);
  if (connection_ == nullptr) return End({grpc::StatusCode::UNAVAILABLE, "the connection is closed already"});
  connection_->Charge(cost::kCallNs);
  if (connection_->has_session) {
    connection_.reset();  // it belongs to the other session, which must go on
    return End(
        {grpc::StatusCode::ALREADY_EXISTS, "this connection already has a session; open one session per connection"});
  }
  if (!connection_->refusal.ok()) {
    const grpc::Status why = connection_->refusal;
    connection_.reset();
    return End(why);
  }
  connection_->has_session = true;
  const Principal& who = connection_->who;
  client_ = Quotas::Holding(host_.quotas, who, QuotaKind::kClients);
  queues_ = Quotas::Holding(host_.quotas, who, QuotaKind::kQueues);
  devices_ = Quotas::Holding(host_.quotas, who, QuotaKind::kDevices);
  memory_ = Quotas::Holding(host_.quotas, who, QuotaKind::kMemory);
  outbox_.Begin(&memory_);
  stream_.Read(&message_);
}

void SessionProtocol::HandleRead(bool ok) {
  if (ended_) return;
  if (!ok) return End(grpc::Status::OK);
  if (host_.connections.Find(peer_, is_admin_) != connection_)
    return End({grpc::StatusCode::UNAVAILABLE, "the client is gone"});
  if (connection_->client_id == 0) {
    // A restored client sends a hello again, too.
    if (!HandleHello()) return;
  } else if (Client* client = host_.core.Clients().Find(connection_->client_id)) {
    HandleMessage(*client);
  }
  if (ended_) return;
  const std::size_t bytes = message_.ByteSizeLong();
  connection_->Charge(cost::kMessageNs);
  host_.quotas.Charge(connection_->who, QuotaKind::kMessages, 1);
  host_.quotas.Charge(connection_->who, QuotaKind::kMessageBytes, bytes);
  NoticeIfSlow();
  // A protobuf message keeps the memory of its largest contents.
  if (bytes > kLargeMessage) v1::ClientMessage().Swap(&message_);
  stream_.Read(&message_);
}

std::string SessionProtocol::PeerName() const {
  return ProcessText(static_cast<std::uint64_t>(connection_->peer.pid), connection_->peer.uid);
}

void SessionProtocol::NoticeIfSlow() {
  const std::uint64_t now = MonotonicNs();
  if (last_slow_notice_ns_ != 0 && now - last_slow_notice_ns_ < kSlowNoticeNs) return;
  for (const QuotaKind kind : {QuotaKind::kMessages, QuotaKind::kMessageBytes}) {
    if (host_.quotas.Has(connection_->who, kind, now)) continue;
    last_slow_notice_ns_ = now;
    host_.quotas.CountRefusal(kind);
    OverQuota(kind, "; until then its messages are read more slowly");
  }
}

std::string SessionProtocol::OverQuota(QuotaKind kind, const std::string& consequence) {
  std::string why = host_.quotas.Reason(connection_->who, kind);
  host_.core.Refused(connection_->who, "pid " + std::to_string(connection_->peer.pid) + ": " + why + consequence);
  Notice(why + consequence);
  return why;
}

bool SessionProtocol::HandleHello() {
  const auto refuse = [this](grpc::StatusCode code, const std::string& text) {
    host_.core.Refused(connection_->who, PeerName() + ": " + text);
    End({code, text});
    return false;
  };
  if (!message_.has_hello()) {
    return refuse(grpc::StatusCode::INVALID_ARGUMENT, "the first message is not a hello; send a hello first");
  }
  const v1::Hello& hello = message_.hello();
  if (!host_.core.IsEnabled()) {
    return refuse(grpc::StatusCode::UNAVAILABLE, "the daemon is disabled; run xschedctl enable to end that");
  }
  if (connection_->waiting_id == 0 &&
      host_.core.Clients().Clients().size() + host_.state.AbsentClients() >= kMaxClients) {
    return refuse(grpc::StatusCode::RESOURCE_EXHAUSTED,
                  "xschedd has " + std::to_string(kMaxClients) + " clients, the most that it keeps; end some of them");
  }
  const bool is_shim = connection_->channel != nullptr;
  const std::string token(connection_->token, is_shim ? sizeof connection_->token : 0);
  if (hello.token() != token) {
    return refuse(grpc::StatusCode::INVALID_ARGUMENT,
                  "the hello has another token than the preamble; send the preamble's token");
  }
  const Hints hints = HintsOf(hello);
  if (const auto checked = Check(hints); !checked) {
    return refuse(grpc::StatusCode::INVALID_ARGUMENT, checked.error().Line());
  }
  const std::size_t text = hello.ByteSizeLong() + kClientBytes;
  const std::size_t kept = std::min<std::size_t>(text, kMaxClientTextBytes);
  for (const auto& [holding, kind, amount] :
       {std::tuple(&client_, QuotaKind::kClients, std::size_t{1}), std::tuple(&memory_, QuotaKind::kMemory, kept)}) {
    if (!holding->Add(amount)) {
      return refuse(grpc::StatusCode::RESOURCE_EXHAUSTED, host_.quotas.Reason(connection_->who, kind));
    }
  }
  Register(hello);
  return true;
}

void SessionProtocol::Register(const v1::Hello& hello) {
  Client& client = ListClient(Introduce(*connection_, hello, host_.core.Groups()));
  connection_->client_id = client.id;
  connection_->deadline.cancel();
  host_.commands.Read(connection_->peer.pid, connection_->PidFd(),
                      [&host = host_, id = client.id](std::string command) {
                        host.Post([&host, id, command = std::move(command)] {
                          if (Client* still = host.core.Clients().Find(id)) host.core.SetCommand(*still, command);
                        });
                      });

  v1::DaemonMessage answer;
  v1::Welcome& welcome = *answer.mutable_welcome();
  welcome.set_daemon_version(kDaemonVersion);
  welcome.set_client_id(client.id);
  welcome.set_lease_ms(host_.core.Settings().lease_ms);
  welcome.set_effective_priority(client.effective.priority);
  FillConfiguration(client, *welcome.mutable_configuration());
  welcome.set_monotonic_ns(MonotonicNs());
  Send(std::move(answer));
  listed_as_ = client.id;
  sessions_[listed_as_] = this;
  if (connection_->channel == nullptr) {
    Notice("this client is listed but never held: its connection has no shared memory");
  }
  Notice(HintNote(client, host_.core.Settings()));
}

Client& SessionProtocol::ListClient(NewClient fresh) {
  const std::uint64_t waiting_id = std::exchange(connection_->waiting_id, 0);
  Client* const waiting = waiting_id != 0 ? host_.core.Clients().Find(waiting_id) : nullptr;
  if (waiting == nullptr) return host_.core.AddClient(std::move(fresh));
  host_.state.Returned(waiting_id);
  connection_->channel->ForgetDescriptors();  // the descriptor store has them
  host_.core.ResumeClient(*waiting, std::move(fresh));
  is_resuming_ = true;
  return *waiting;
}

void SessionProtocol::FillConfiguration(const Client& client, v1::Configuration& configuration) const {
  for (std::string& entry : PassthroughOf(client, host_.core.Settings()))
    configuration.add_passthrough(std::move(entry));
  configuration.set_activity_interval_ms(host_.core.Settings().activity_interval_ms);
  configuration.set_queue_priority(
      ToMessage(policy::QueuePriorityOf(host_.core.Settings().policy, client.effective.priority)));
}

template <typename Action>
Result<void> SessionProtocol::WithinQuota(QuotaKind kind, Quotas::Holding& holding, const Action& action) {
  if (!holding.Add()) {
    OverQuota(kind, "; this one is not scheduled separately");
    return {};
  }
  Result<void> result = action();
  if (!result) holding.Remove();
  return result;
}

void SessionProtocol::HandleMessage(Client& client) {
  const auto kind = message_.message_case();
  const bool lasts = kind == v1::ClientMessage::kDeviceAttached || kind == v1::ClientMessage::kQueueCreated;
  if (!lasts && std::exchange(is_resuming_, false)) host_.core.ResumeDone(client);
  Result<void> result;
  switch (kind) {
    case v1::ClientMessage::kDeviceAttached:
      result = WithinQuota(QuotaKind::kDevices, devices_,
                           [&] { return AttachDevice(client, DeviceOf(message_.device_attached())); });
      break;
    case v1::ClientMessage::kQueueCreated: {
      const v1::QueueCreated& queue = message_.queue_created();
      result = WithinQuota(QuotaKind::kQueues, queues_, [&] {
        return host_.core.CreateQueue(client, {queue.queue(), queue.slot(), queue.native_priority()});
      });
      has_unlisted_queues_ |= !client.queues.contains(queue.queue());
      break;
    }
    case v1::ClientMessage::kQueueDestroyed:
      if (MayBeUnlisted(client, message_.queue_destroyed().queue())) break;
      result = host_.core.DestroyQueue(client, message_.queue_destroyed().queue());
      if (result) queues_.Remove();
      break;
    case v1::ClientMessage::kHint:
      result = HandleHint(client);
      break;
    case v1::ClientMessage::kActivity:
      result = HandleActivity(client);
      break;
    case v1::ClientMessage::kQueuePriorities:
      TakeQueuePriorities(client);
      break;
    case v1::ClientMessage::kHello:
      result = Fail("a second hello was ignored", "send one hello per session");
      break;
    case v1::ClientMessage::MESSAGE_NOT_SET:
      result = Fail("a message of an unknown kind was ignored", "run a client and a daemon of the same release");
      break;
  }
  if (!result) Notice(result.error().Line());
}

Result<void> SessionProtocol::AttachDevice(Client& client, NewDevice device) {
  const std::uint64_t began = MonotonicNs();
  const std::string address = CleanText(device.pci_address, kMaxNameBytes);
  Result<void> attached = host_.core.AttachDevice(client, std::move(device));
  connection_->Charge(std::min(MonotonicNs() - began, kMaxCheckNs));
  if (attached) return attached;
  host_.core.Refused(connection_->who, PeerName() + ": device " + address + ": " + attached.error().Line());
  const std::string slot = "device slot " + std::to_string(message_.device_attached().slot());
  if (attached.error().what.starts_with(slot)) return attached;
  return Fail(slot + " is not scheduled: " + attached.error().what, attached.error().remedy);
}

Result<void> SessionProtocol::HandleHint(Client& client) {
  const v1::Hint& hint = message_.hint();
  if (hint.has_queue() && MayBeUnlisted(client, hint.queue())) return {};
  auto set = host_.core.SetHints(client, HintsOf(hint));
  if (set && (hint.has_priority() || hint.has_weight())) Notice(HintNote(client, host_.core.Settings()));
  return set;
}

Result<void> SessionProtocol::HandleActivity(Client& client) {
  CountedActivity counted = CountActivity(message_.activity(), client, memory_);
  if (counted.is_memory_full && !std::exchange(noticed_rules_, true))
    OverQuota(QuotaKind::kMemory, "; further passthrough rules are not counted separately");
  return std::move(counted.taken);
}

void SessionProtocol::TakeQueuePriorities(Client& client) {
  const QueuePriorityReport report = ReportOf(message_.queue_priorities());
  const bool was_refused = client.queue_priority.in_force < client.queue_priority.queues;
  client.queue_priority = report;
  if (report.in_force == report.queues || was_refused) return;
  const std::string text = QueuePriorityText(client, host_.core.Settings().policy);
  if (!text.empty()) host_.core.Refused(connection_->who, PeerName() + ": " + text);
}

void SessionProtocol::Notice(const std::string& text) {
  if (!text.empty() && !ended_ && outbox_.Notice(text)) connection_->Charge(cost::kMessageNs);
}

void SessionProtocol::Send(v1::DaemonMessage message) {
  if (ended_) return;
  switch (outbox_.Send(std::move(message))) {
    case Outbox::Outcome::kTaken:
      return connection_->Charge(cost::kMessageNs);
    case Outbox::Outcome::kUnread:
      return End(
          {grpc::StatusCode::RESOURCE_EXHAUSTED, "the client does not read its messages; read them as they come"});
    case Outbox::Outcome::kMemory:
      // Later, because the caller may be in the middle of changing the client.
      const std::string why = host_.quotas.Reason(connection_->who, QuotaKind::kMemory);
      return host_.Post([this, why] { End({grpc::StatusCode::RESOURCE_EXHAUSTED, why}); });
  }
}

void SessionProtocol::HandleWritten(bool ok) {
  outbox_.Written();
  if (ok && !ended_) outbox_.WriteNext();
}

void SessionProtocol::End(const grpc::Status& status) {
  if (ended_) return;
  ended_ = true;
  if (const auto listed = sessions_.find(listed_as_); listed != sessions_.end() && listed->second == this)
    sessions_.erase(listed);
  for (Quotas::Holding* holding : {&client_, &queues_, &devices_, &memory_})
    holding->Reset();
  if (connection_ != nullptr) {
    host_.core.RemoveClient(connection_->client_id, "its session ended");
    connection_->client_id = 0;
    // The stream's end does not prove that the connection ends; a new session would need a new preamble.
    connection_.reset();
  }
  stream_.Finish(status);
}

void SessionProtocol::SendConfiguration() {
  if (ended_) return;
  const Client* client = host_.core.Clients().Find(connection_->client_id);
  if (client == nullptr) return;  // the connection is closed; gRPC will say so soon
  v1::DaemonMessage message;
  FillConfiguration(*client, *message.mutable_configuration());
  Send(std::move(message));
}

}  // namespace xschedd
