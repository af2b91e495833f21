// xschedd.v1.ClientSession on one of the two sockets: one bidirectional stream per client.
// Thread rule: gRPC calls Session on its threads; everything else runs on the daemon's one thread.
#pragma once

#include <cstdint>
#include <map>

#include "daemon/host.h"
#include "session.grpc.pb.h"

namespace xschedd {

class ConfigurationSink {
 public:
  virtual ~ConfigurationSink() = default;
  virtual void SendConfiguration() = 0;
};

// The sessions that have said hello, by client.
using ConfigurationSinks = std::map<std::uint64_t, ConfigurationSink*>;

class SessionService final : public v1::ClientSession::CallbackService {
 public:
  // `is_admin`: serves admin.sock.
  SessionService(Host& host, bool is_admin) : host_(host), is_admin_(is_admin) {}

  grpc::ServerBidiReactor<v1::ClientMessage, v1::DaemonMessage>* Session(grpc::CallbackServerContext* context) override;

  // To this client, if it has a session here; 0: to every client.
  void SendConfiguration(std::uint64_t client);

 private:
  Host& host_;
  const bool is_admin_;
  ConfigurationSinks sessions_;
};

}  // namespace xschedd
