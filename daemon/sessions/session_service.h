// xschedd.v1.ClientSession on one of the two sockets: one bidirectional stream per client.
// Thread rule: gRPC calls Session on its threads; everything else runs on the daemon's one thread.
#pragma once

#include <cstdint>
#include <memory>

#include "daemon/host.h"
#include "daemon/sessions/configuration_sinks.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace xschedd {

class SessionService {
 public:
  // `is_admin`: serves admin.sock.
  SessionService(Host& host, bool is_admin);
  ~SessionService();

  // What gRPC serves; as long as this.
  grpc::Service& Rpc();

  // To this client, if it has a session here; 0: to every client.
  void SendConfiguration(std::uint64_t client);

 private:
  class Calls;

  ConfigurationSinks sessions_;
  const std::unique_ptr<Calls> calls_;
};

}  // namespace xschedd
