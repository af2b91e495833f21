// A gRPC server without a listening port: it serves the connections that it is given. No two sockets have the same one,
// so that a call's rights depend on the server that it reached, not on anything that gRPC says. Only the users of one
// socket are told apart by gRPC's name for the connection. Thread rule: Start and Stop from main; Adopt from the
// daemon's one thread.
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

// Sets what gRPC and its libraries read once. Call before any use of gRPC and before threads exist.
void PrepareGrpc();

class PeerProbe;

class RpcServer {
 public:
  // The services must outlive the server. Also fails if this gRPC does not name connections by descriptor, since every
  // caller's identity depends on that. gRPC's threads call `on_unknown` with ServerContext::peer() for each call of an
  // unknown method.
  static Result<std::unique_ptr<RpcServer>> Start(const std::vector<grpc::Service*>& services,
                                                  std::function<void(std::string)> on_unknown);
  ~RpcServer();

  // Takes ownership of the socket.
  void Adopt(int fd);
  // Ends all calls and returns when their reactors are done. The loop must keep running meanwhile.
  void Stop();

 private:
  explicit RpcServer(std::function<void(std::string)> on_unknown);
  Result<void> CheckPeerNames();

  std::unique_ptr<PeerProbe> probe_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace xschedd
