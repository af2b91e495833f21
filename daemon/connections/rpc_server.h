// A gRPC server without a listening port: it serves the sockets that it is given. client.sock and admin.sock have one
// each, so that the rights of a call depend on the server that it reached, and on nothing that gRPC says about it. The
// name that gRPC gives to a connection distinguishes the users of one socket. Thread rule: Start and Stop from main;
// Adopt from the daemon's one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"

namespace grpc {
class Server;
class Service;
}  // namespace grpc

namespace xschedd {

// Settings of gRPC that are taken from the environment. Call it before anything of gRPC and before there are threads.
void PrepareGrpc();

class PeerProbe;

class RpcServer {
 public:
  // The services must outlive the server. Fails also where this gRPC does not name a connection by its descriptor, on
  // which the identity of every caller rests. `on_unknown`: called by gRPC's threads for each call of a method that
  // there is not, with ServerContext::peer().
  static Result<std::unique_ptr<RpcServer>> Start(const std::vector<grpc::Service*>& services,
                                                  std::function<void(std::string)> on_unknown);
  ~RpcServer();

  // Takes ownership of the socket.
  void Adopt(int fd);
  // Ends all calls; returns when their reactors are done. The loop must still run meanwhile.
  void Stop();

 private:
  explicit RpcServer(std::function<void(std::string)> on_unknown);
  Result<void> CheckPeerNames();

  std::unique_ptr<PeerProbe> probe_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace xschedd
