// The running daemon: sockets, gRPC, core and signals around one loop.
// Thread rule: main's thread, which is the daemon's one thread while Run runs.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "daemon/admin/admin_operations.h"
#include "daemon/admin/admin_service.h"
#include "daemon/connections/acceptor.h"
#include "daemon/connections/claim_sockets.h"
#include "daemon/connections/connections.h"
#include "daemon/connections/quotas.h"
#include "daemon/connections/rpc_server.h"
#include "daemon/connections/sockets.h"
#include "daemon/core.h"
#include "daemon/host.h"
#include "daemon/metrics/metrics_collector.h"
#include "daemon/metrics/metrics_http.h"
#include "daemon/service_manager/descriptor_store.h"
#include "daemon/service_manager/service_manager.h"
#include "daemon/sessions/session_service.h"
#include "daemon/state/persistent_state.h"

namespace xschedd {

class Server {
 public:
  Server(ConfigSource source, Config config, ListeningSockets sockets);
  ~Server();

  // Takes over what an earlier daemon left in `passed`, starts gRPC and begins to accept.
  Result<void> Start(std::vector<PassedDescriptor> passed);
  // Returns when a signal has stopped the daemon: gates open, sockets removed.
  void Run();

 private:
  // What a socket serves, client.sock to all but shims.
  struct Served {
    Served(Server& server, bool is_admin);
    std::vector<grpc::Service*> Services();
    AdminService admin;
    SessionService sessions;
    std::unique_ptr<RpcServer> rpc;
  };
  static Result<void> StartServing(std::unique_ptr<RpcServer>& rpc, const std::vector<grpc::Service*>& services,
                                   std::function<void(std::string)> on_unknown);
  RpcServer& RpcOf(const Connection& connection);

  // Gives a shim's connection its memory; GiveBack takes it back if the connection gets no session.
  Result<void> Equip(Connection& connection, const abi::Layout& layout);
  void GiveBack(Connection& connection);
  // Serves on systemd's socket or the configured address. Without the address the daemon runs on.
  void ServeMetrics();
  // As SessionService::SendConfiguration, of all servers.
  void SendConfiguration(std::uint64_t client);
  void StopMetrics();
  void AwaitSignal();
  void OnReload();
  void Stop();
  // Pings the service manager twice per watchdog interval.
  void FeedWatchdog();

  // Before the loop, because handlers left in it at the end still hold quotas.
  Quotas quotas_;
  boost::asio::io_context io_;
  // Keeps the loop running until gRPC has stopped, whose last calls need it.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keep_running_;
  ListeningSockets sockets_;
  boost::asio::signal_set signals_;
  ServiceManager manager_;
  boost::asio::steady_timer watchdog_;
  Core core_;
  DescriptorStore store_;
  PersistentState state_;
  Connections connections_;
  CommandReader commands_;
  Host host_;
  AdminOperations operations_;
  MetricsCollector metrics_;
  MetricsHttp metrics_http_;
  // The settings by which an address was opened or tried; none: systemd's socket is served, or none was wanted yet.
  std::optional<MetricsSettings> metrics_served_;
  // Shims have a gRPC server of their own, with one method: for each connection, gRPC keeps a table of all methods of
  // its server (3.5 KB with Admin's), and there are a thousand shims.
  SessionService shim_sessions_;
  std::unique_ptr<RpcServer> shims_;
  Served clients_;
  Served admins_;
  Acceptor client_acceptor_;
  Acceptor admin_acceptor_;
  ClaimSockets claim_sockets_;
  std::thread stopper_;  // waits for gRPC to stop while the loop runs on
};

}  // namespace xschedd
