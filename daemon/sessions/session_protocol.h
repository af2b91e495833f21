// The protocol of one session, from the first message to the end of its stream, and what counts against the quotas of
// the client's user. A wrong message has no effect, and the client is told why. Knows no gRPC stream: SessionReactor
// connects it to one. Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "daemon/host.h"
#include "daemon/sessions/outbox.h"
#include "daemon/sessions/session_service.h"

namespace xschedd {

// What a session does with its stream. Read and Write begin an operation, and the message stays valid until it is done.
class SessionStream {
 public:
  virtual ~SessionStream() = default;
  virtual void Read(v1::ClientMessage* message) = 0;
  virtual void Write(const v1::DaemonMessage* message) = 0;
  virtual void Finish(const grpc::Status& status) = 0;
};

class SessionProtocol final : public ConfigurationSink {
 public:
  // `peer`: ServerContext::peer(). All arguments outlive this.
  SessionProtocol(Host& host, SessionStream& stream, std::set<ConfigurationSink*>& sessions, bool is_admin,
                  std::string peer)
      : host_(host), stream_(stream), sessions_(sessions), is_admin_(is_admin), peer_(std::move(peer)) {}

  void Begin();
  // An operation is done; `ok` as gRPC says it.
  void HandleRead(bool ok);
  void HandleWritten(bool ok);
  // Finishes the stream once; nothing is read or written afterwards.
  void End(const grpc::Status& status);

  void SendConfiguration() override;

 private:
  // False: the session has ended.
  bool HandleHello();
  void Register(const v1::Hello& hello);
  // A client that was restored after a restart is listed already.
  Client& ListClient(NewClient fresh);
  void HandleMessage(Client& client);
  // Looking at what the process has open takes time, which is charged to the client.
  Result<void> AttachDevice(Client& client, NewDevice device);
  Result<void> HandleHint(Client& client);
  Result<void> HandleActivity(Client& client);
  // Takes one from the quota for what `action` makes.
  template <typename Action>
  Result<void> WithinQuota(QuotaKind kind, Quotas::Holding& holding, const Action& action);
  // Tells client and log. After hello.
  std::string OverQuota(QuotaKind kind, const std::string& consequence);
  // Once the uid has sent too much, its connections are read more slowly (Connections). Tells the client now and then.
  void NoticeIfSlow();
  void FillConfiguration(const Client& client, v1::Configuration& configuration) const;
  void Notice(const std::string& text);
  // Does nothing after the end: gRPC would abort.
  void Send(v1::DaemonMessage message);
  std::string PeerName() const;

  Host& host_;
  SessionStream& stream_;
  std::set<ConfigurationSink*>& sessions_;
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
  bool is_resuming_ = false;  // it was restored, and reports again what it has
  bool ended_ = false;
};

}  // namespace xschedd
