// One session, from the first message to the end of its stream: the protocol, and what counts against the quotas of the
// client's user. What is wrong in a message costs that message only.
// `Stream`: gRPC's reactor; in tests one of their own, which knows no gRPC.
// Thread rule: gRPC calls On... on its threads; everything else happens on the daemon's one thread. Deletes itself.
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "common/clock.h"
#include "daemon/build_config.h"
#include "daemon/host.h"
#include "daemon/registry/effective.h"
#include "daemon/registry/effective_words.h"
#include "daemon/registry/limits.h"
#include "daemon/sessions/activity.h"
#include "daemon/sessions/introduction.h"
#include "daemon/sessions/outbox.h"
#include "daemon/sessions/session_service.h"

namespace xschedd {

template <typename Stream>
class SessionReactor final : public Stream, public ConfigurationSink {
  using Stream::Finish;
  using Stream::StartRead;
  using Stream::StartWrite;

 public:
  SessionReactor(Host& host, std::set<ConfigurationSink*>& sessions, bool is_admin, std::string peer)
      : host_(host), sessions_(sessions), is_admin_(is_admin), peer_(std::move(peer)) {
    host_.Post([this] { Begin(); });
  }

  void OnReadDone(bool ok) override {
    host_.Post([this, ok] { HandleRead(ok); });
  }
  void OnWriteDone(bool ok) override {
    host_.Post([this, ok] { HandleWritten(ok); });
  }
  void OnCancel() override {
    host_.Post([this] { End(grpc::Status::CANCELLED); });
  }
  void OnDone() override {
    host_.Post([this] { delete this; });
  }

  void SendConfiguration() override {
    if (ended_) return;
    const Client* client = host_.core.Clients().Find(connection_->client_id);
    if (client == nullptr) return;  // its connection is closed, and gRPC is about to say so
    v1::DaemonMessage message;
    FillConfiguration(*client, *message.mutable_configuration());
    Send(std::move(message));
  }

 private:
  static constexpr std::size_t kLargeMessage = 2'048;
  // About what the daemon keeps for a client beside its own texts, which come to at most the second.
  static constexpr std::size_t kMemoryOfClient = 2'048;
  static constexpr std::size_t kMostTextOfClient = 6'144;
  static constexpr std::uint64_t kLongestLookNs = 2 * policy::kNsPerMs;  // what takes longer was interrupted
  static constexpr std::uint64_t kTellSlowNs = 60 * policy::kNsPerS;

  // ---- all of this on the daemon's one thread
  void Begin() {
    connection_ = host_.connections.Find(peer_, is_admin_);
    if (connection_ == nullptr) return End({grpc::StatusCode::UNAVAILABLE, "the connection is closed already"});
    connection_->Charge(cost::kCallNs);
    if (connection_->has_session) {
      connection_.reset();  // the other session keeps it, and this one must not end it
      return End({grpc::StatusCode::ALREADY_EXISTS, "this connection has a session; open one stream a connection"});
    }
    if (!connection_->refusal.ok()) {
      const grpc::Status why = connection_->refusal;
      connection_.reset();
      return End(why);
    }
    connection_->has_session = true;
    const uid_t uid = connection_->peer.uid;
    client_ = Quotas::Holding(host_.quotas, uid, QuotaKind::kClients);
    queues_ = Quotas::Holding(host_.quotas, uid, QuotaKind::kQueues);
    devices_ = Quotas::Holding(host_.quotas, uid, QuotaKind::kDevices);
    memory_ = Quotas::Holding(host_.quotas, uid, QuotaKind::kMemory);
    outbox_.Begin(&memory_);
    StartRead(&message_);
  }

  void HandleRead(bool ok) {
    if (ended_) return;
    if (!ok) return End(grpc::Status::OK);
    if (host_.connections.Find(peer_, is_admin_) != connection_)
      return End({grpc::StatusCode::UNAVAILABLE, "the client is gone"});
    if (connection_->client_id == 0) {
      // Also where its client has waited for it since a restart.
      if (!HandleHello()) return;
    } else if (Client* client = host_.core.Clients().Find(connection_->client_id)) {
      HandleMessage(*client);
    }
    if (ended_) return;
    const std::size_t bytes = message_.ByteSizeLong();
    connection_->Charge(cost::kMessageNs);
    host_.quotas.Charge(connection_->peer.uid, QuotaKind::kMessages, 1);
    host_.quotas.Charge(connection_->peer.uid, QuotaKind::kMessageBytes, bytes);
    TellIfSlow();
    // A message keeps the memory of the largest that it ever was.
    if (bytes > kLargeMessage) v1::ClientMessage().Swap(&message_);
    StartRead(&message_);
  }

  std::string NameOfPeer() const {
    return ProcessText(static_cast<std::uint64_t>(connection_->peer.pid), connection_->peer.uid);
  }

  // Once the uid has sent too much, its connections are read more slowly (Connections). Said now and then.
  void TellIfSlow() {
    const std::uint64_t now = MonotonicNs();
    if (told_slow_ns_ != 0 && now - told_slow_ns_ < kTellSlowNs) return;
    for (const QuotaKind kind : {QuotaKind::kMessages, QuotaKind::kMessageBytes}) {
      if (host_.quotas.Has(connection_->peer.uid, kind, now)) continue;
      told_slow_ns_ = now;
      host_.quotas.CountRefusal(kind);
      OverQuota(kind, "; its messages are read more slowly");
    }
  }

  // Tells client and log. After hello.
  std::string OverQuota(QuotaKind kind, const std::string& consequence) {
    std::string why = host_.quotas.Reason(connection_->peer.uid, kind);
    host_.core.Refused(connection_->peer.uid,
                       "pid " + std::to_string(connection_->peer.pid) + ": " + why + consequence);
    Notice(why + consequence);
    return why;
  }

  bool HandleHello() {
    const auto refuse = [this](grpc::StatusCode code, const std::string& text) {
      host_.core.Refused(connection_->peer.uid, NameOfPeer() + ": " + text);
      End({code, text});
      return false;
    };
    if (!message_.has_hello()) {
      return refuse(grpc::StatusCode::INVALID_ARGUMENT, "the first message is not hello; send hello first");
    }
    const v1::Hello& hello = message_.hello();
    if (!host_.core.IsEnabled()) {
      return refuse(grpc::StatusCode::UNAVAILABLE, "the daemon is disabled; xschedctl enable ends that");
    }
    if (connection_->waiting_id == 0 &&
        host_.core.Clients().Clients().size() + host_.state.AbsentClients() >= kMaxClients) {
      return refuse(grpc::StatusCode::RESOURCE_EXHAUSTED,
                    "xschedd has " + std::to_string(kMaxClients) + " clients, as many as it keeps; end some");
    }
    const bool is_shim = connection_->channel != nullptr;
    const std::string token(connection_->token, is_shim ? sizeof connection_->token : 0);
    if (hello.token() != token) {
      return refuse(grpc::StatusCode::INVALID_ARGUMENT,
                    "hello has another token than the preamble; echo the preamble's");
    }
    const Hints hints = HintsOf(hello);
    if (const auto checked = Check(hints); !checked) {
      return refuse(grpc::StatusCode::INVALID_ARGUMENT, checked.error().Line());
    }
    const std::size_t text = hello.ByteSizeLong() + kMemoryOfClient;
    const std::size_t kept = std::min<std::size_t>(text, kMostTextOfClient);
    for (const auto& [holding, kind, amount] :
         {std::tuple(&client_, QuotaKind::kClients, std::size_t{1}), std::tuple(&memory_, QuotaKind::kMemory, kept)}) {
      if (!holding->Add(amount)) {
        return refuse(grpc::StatusCode::RESOURCE_EXHAUSTED, host_.quotas.Reason(connection_->peer.uid, kind));
      }
    }
    Register(hello);
    return true;
  }

  void Register(const v1::Hello& hello) {
    Client& client = ListClient(Introduce(*connection_, hello, host_.core.Groups()));
    connection_->client_id = client.id;
    connection_->deadline.cancel();
    host_.commands.Read(connection_->peer.pid, connection_->PidFd(),
                        [&host = host_, id = client.id](std::string command) {
                          host.Post([&host, id, command = std::move(command)] {
                            if (Client* still = host.core.Clients().Find(id)) still->identity.command = command;
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
    sessions_.insert(this);
    if (connection_->channel == nullptr) {
      Notice("this connection has no shared memory: the client is listed, but cannot be gated");
    }
    Notice(HintNote(client, host_.core.Settings()));
  }

  // One that has waited since a restart is listed already.
  Client& ListClient(NewClient fresh) {
    const std::uint64_t waiting_id = std::exchange(connection_->waiting_id, 0);
    Client* const waiting = waiting_id != 0 ? host_.core.Clients().Find(waiting_id) : nullptr;
    if (waiting == nullptr) return host_.core.AddClient(std::move(fresh));
    host_.state.Returned(waiting_id);
    connection_->channel->ForgetDescriptors();  // the store has them
    host_.core.ResumeClient(*waiting, std::move(fresh));
    is_resuming_ = true;
    return *waiting;
  }

  void FillConfiguration(const Client& client, v1::Configuration& configuration) const {
    for (std::string& entry : PassthroughOf(client, host_.core.Settings()))
      configuration.add_passthrough(std::move(entry));
    configuration.set_activity_interval_ms(host_.core.Settings().activity_interval_ms);
  }

  // What is wrong in a message costs that message only; the client is told.
  void HandleMessage(Client& client) {
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
        break;
      }
      case v1::ClientMessage::kQueueDestroyed:
        result = host_.core.DestroyQueue(client, message_.queue_destroyed().queue());
        if (result) queues_.Remove();
        break;
      case v1::ClientMessage::kHint:
        result = HandleHint(client);
        break;
      case v1::ClientMessage::kActivity:
        result = HandleActivity(client);
        break;
      case v1::ClientMessage::kHello:
        result = Fail("hello was said already");
        break;
      case v1::ClientMessage::MESSAGE_NOT_SET:
        result = Fail("a message of no known kind was left out", "run a client and a daemon of the same release");
        break;
    }
    if (!result) Notice(result.error().Line());
  }

  // Looking at what the process has open takes its time, which is the client's.
  Result<void> AttachDevice(Client& client, NewDevice device) {
    const std::uint64_t began = MonotonicNs();
    const std::string address = CleanText(device.pci_address, kMaxNameBytes);
    Result<void> attached = host_.core.AttachDevice(client, std::move(device));
    connection_->Charge(std::min(MonotonicNs() - began, kLongestLookNs));
    if (attached) return attached;
    host_.core.Refused(connection_->peer.uid, NameOfPeer() + ": device " + address + ": " + attached.error().Line());
    const std::string slot = "device slot " + std::to_string(message_.device_attached().slot());
    if (attached.error().what.starts_with(slot)) return attached;
    return Fail(slot + " is not scheduled: " + attached.error().what, attached.error().remedy);
  }

  // Takes one from the quota for what `action` makes.
  template <typename Action>
  Result<void> WithinQuota(QuotaKind kind, Quotas::Holding& holding, const Action& action) {
    if (!holding.Add()) {
      OverQuota(kind, "; this one is not scheduled by itself");
      return {};
    }
    Result<void> result = action();
    if (!result) holding.Remove();
    return result;
  }

  Result<void> HandleHint(Client& client) {
    const v1::Hint& hint = message_.hint();
    auto set = host_.core.SetHints(client, HintsOf(hint));
    if (set && (hint.has_priority() || hint.has_weight())) Notice(HintNote(client, host_.core.Settings()));
    return set;
  }

  Result<void> HandleActivity(Client& client) {
    CountedActivity counted = CountActivity(message_.activity(), client, memory_);
    if (counted.is_memory_full && !std::exchange(told_rules_, true))
      OverQuota(QuotaKind::kMemory, "; more rules are not counted apart");
    return std::move(counted.taken);
  }

  void Notice(const std::string& text) {
    if (!text.empty() && !ended_ && outbox_.Notice(text)) connection_->Charge(cost::kMessageNs);
  }

  // Behind the end nothing is sent: gRPC would abort.
  void Send(v1::DaemonMessage message) {
    if (ended_) return;
    switch (outbox_.Send(std::move(message))) {
      case Outbox::Full::kNot:
        return connection_->Charge(cost::kMessageNs);
      case Outbox::Full::kUnread:
        return End({grpc::StatusCode::RESOURCE_EXHAUSTED, "the client does not read; read the session's messages"});
      case Outbox::Full::kMemory:
        // Not at once: whoever sends this may be in the middle of something with the client.
        const std::string why = host_.quotas.Reason(connection_->peer.uid, QuotaKind::kMemory);
        return host_.Post([this, why] { End({grpc::StatusCode::RESOURCE_EXHAUSTED, why}); });
    }
  }

  void HandleWritten(bool ok) {
    outbox_.Written();
    if (ok && !ended_) outbox_.WriteNext();
  }

  void End(const grpc::Status& status) {
    if (ended_) return;
    ended_ = true;
    sessions_.erase(this);
    for (Quotas::Holding* holding : {&client_, &queues_, &devices_, &memory_})
      holding->Reset();
    if (connection_ != nullptr) {
      host_.core.RemoveClient(connection_->client_id, "its session ended");
      connection_->client_id = 0;
      // The stream's end does not prove that the connection ends; a new session would need a new preamble.
      connection_.reset();
    }
    Finish(status);
  }

  Host& host_;
  std::set<ConfigurationSink*>& sessions_;
  const bool is_admin_;
  const std::string peer_;
  std::shared_ptr<Connection> connection_;
  v1::ClientMessage message_;
  Quotas::Holding client_;
  Quotas::Holding queues_;
  Quotas::Holding devices_;
  Quotas::Holding memory_;
  Outbox outbox_{[this](const v1::DaemonMessage* message) { StartWrite(message); }};
  std::uint64_t told_slow_ns_ = 0;  // 0: never
  bool told_rules_ = false;
  bool is_resuming_ = false;  // it was restored, and tells again of what it has
  bool ended_ = false;
};

}  // namespace xschedd
