// xschedd.v1.ClientSession: one bidirectional stream a client.
// Thread rule: gRPC calls Session on its threads; everything else happens on the daemon's one thread.
#pragma once

#include <set>

#include "daemon/ipc/host.h"
#include "session.grpc.pb.h"

namespace xschedd {

class ConfigurationSink {
 public:
  virtual ~ConfigurationSink() = default;
  virtual void SendConfiguration() = 0;
};

class SessionService final : public v1::ClientSession::CallbackService {
 public:
  explicit SessionService(Host& host) : host_(host) {}

  grpc::ServerBidiReactor<v1::ClientMessage, v1::DaemonMessage>* Session(grpc::CallbackServerContext* context) override;

  // To every client, after a reload.
  void SendConfiguration();

 private:
  Host& host_;
  std::set<ConfigurationSink*> sessions_;  // that have said hello
};

}  // namespace xschedd
