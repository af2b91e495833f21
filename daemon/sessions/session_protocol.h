// The protocol of one session, from its first message to the end of its stream, and what it holds of the user's quotas.
// A wrong message has no effect; a notice tells the client why. Knows nothing of gRPC streams; SessionReactor connects
// it to one. Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "daemon/host.h"
#include "daemon/sessions/configuration_sinks.h"
#include "daemon/sessions/outbox.h"

namespace xschedd {

// A session's stream. Read and Write start an operation; the message must stay valid until it is done.
class SessionStream {
 public:
  virtual ~SessionStream() = default;
  virtual void Read(v1::ClientMessage* message) = 0;
  virtual void Write(const v1::DaemonMessage* message) = 0;
  virtual void Finish(const grpc::Status& status) = 0;
};

class SessionProtocol final : public ConfigurationSink {
 public:
  // `peer`: ServerContext::peer(). All references must outlive this.
  SessionProtocol(Host& host, SessionStream& stream, ConfigurationSinks& sessions, bool is_admin, std::string peer)
      : host_(host), stream_(stream), sessions_(sessions), is_admin_(is_admin), peer_(std::move(peer)) {}

  void Begin();
  // The operation is done; `ok` is gRPC's result.
  void HandleRead(bool ok);
  void HandleWritten(bool ok);
  // Finishes the stream, once; nothing is read or written afterwards.
  void End(const grpc::Status& status);

  void SendConfiguration() override;

 private:
  // False: the session was ended.
  bool HandleHello();
  void Register(const v1::Hello& hello);
  // Adds the client to the registry, or resumes the one that was restored after a restart.
  Client& ListClient(NewClient fresh);
  void HandleMessage(Client& client);
  // Charges the client for the time that it takes to check which devices the process has open.
  Result<void> AttachDevice(Client& client, NewDevice device);
  Result<void> HandleHint(Client& client);
  // The id is not known, but may be that of a queue that a quota kept from being listed: no error of the client's.
  bool MayBeUnlisted(const Client& client, std::uint64_t queue) const {
    return has_unlisted_queues_ && queue != kDefaultStream && !client.queues.contains(queue);
  }
  Result<void> HandleActivity(Client& client);
  void TakeQueuePriorities(Client& client);
  // Runs `action` with one unit of the quota, which is returned if it fails.
  template <typename Action>
  Result<void> WithinQuota(QuotaKind kind, Quotas::Holding& holding, const Action& action);
  // Sends a notice and logs the refusal. Only after hello.
  std::string OverQuota(QuotaKind kind, const std::string& consequence);
  // Sends a notice now and then while the user sends too much and is read more slowly (by Connections).
  void NoticeIfSlow();
  void FillConfiguration(const Client& client, v1::Configuration& configuration) const;
  void Notice(const std::string& text);
  // Does nothing after the end, where gRPC would abort.
  void Send(v1::DaemonMessage message);
  std::string PeerName() const;

  Host& host_;
  SessionStream& stream_;
  ConfigurationSinks& sessions_;
  std::uint64_t listed_as_ = 0;  // the client in sessions_ whose session this is; 0: none
  const bool is_admin_;
  const std::string peer_;
  std::shared_ptr<Connection> connection_;
  v1::ClientMessage message_;
  Quotas::Holding client_;
  Quotas::Holding queues_;
  Quotas::Holding devices_;
  Quotas::Holding memory_;
  Outbox outbox_{[this](const v1::DaemonMessage* message) { stream_.Write(message); }};
  std::uint64_t last_slow_notice_ns_ = 0;  // 0: never
  bool noticed_rules_ = false;
  bool has_unlisted_queues_ = false;
  bool is_resuming_ = false;  // restored, and reporting its devices and queues again
  bool ended_ = false;
};

}  // namespace xschedd
