// A gRPC server without a listening port: it serves the sockets that it is given. client.sock and admin.sock have one
// each, so a call's rights depend on the server that it reached and not on anything that gRPC says. gRPC's name for a
// connection tells the users of one socket apart. Thread rule: Start and Stop from main; Adopt from the daemon's one
// thread.
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

// Sets gRPC's environment variables. Call before any use of gRPC and before threads exist.
void PrepareGrpc();

class PeerProbe;

class RpcServer {
 public:
  // The services must outlive the server. Also fails if this gRPC does not name connections by descriptor, since every
  // caller's identity depends on that. `on_unknown` is called by gRPC's threads with ServerContext::peer() for each
  // call to an unknown method.
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
