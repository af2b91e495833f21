#include "daemon/server.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "common/clock.h"
#include "daemon/build_config.h"
#include "daemon/metrics/metrics_listen.h"

namespace xschedd {
namespace {

constexpr std::chrono::seconds kStopLimit{5};

}  // namespace

Server::Server(ConfigSource source, Config config, ListeningSockets sockets)
    : quotas_(config.quota),
      io_(1),
      keep_running_(io_.get_executor()),
      sockets_(std::move(sockets)),
      signals_(io_, SIGTERM, SIGINT, SIGHUP),
      watchdog_(io_),
      core_(io_, std::move(source), std::move(config)),
      store_(manager_),
      state_(io_, core_, store_),
      connections_(
          io_, quotas_,
          {.adopt = [this](const Connection& connection) { RpcOf(connection).Adopt(connection.fd); },
           .gone =
               [this](Connection& connection) {
                 core_.RemoveClient(connection.client_id, "its connection closed or it exited");
                 connection.client_id = 0;
                 GiveBack(connection);
               },
           .refused = [this](const Principal& who, const std::string& why) { core_.Refused(who, why); },
           .equip = [this](Connection& connection, const abi::Layout& layout) { return Equip(connection, layout); },
           .dropped = [this](Connection& connection) { GiveBack(connection); },
           .locate =
               [this](Connection& connection) {
                 connection.origin = core_.OriginOf(connection.peer, connection.origin.claim_socket);
                 const Origin& origin = connection.origin;
                 connection.who.place = PlaceWithClaim(origin.claim_socket, core_.ClaimOf(origin), origin.place);
               }}),
      host_{io_, core_, connections_, commands_, quotas_, state_},
      operations_(core_, connections_, quotas_),
      metrics_(io_, core_, connections_, quotas_),
      metrics_http_(io_, metrics_),
      shim_sessions_(host_, false),
      clients_(*this, false),
      admins_(*this, true),
      client_acceptor_(io_, sockets_.Client(),
                       [this](UniqueFd socket) { connections_.Accept(std::move(socket), false); }),
      admin_acceptor_(io_, sockets_.Admin(), [this](UniqueFd socket) { connections_.Accept(std::move(socket), true); }),
      claim_sockets_(io_, sockets_.RuntimeDir(), [this](UniqueFd socket, std::uint64_t claim) {
        connections_.Accept(std::move(socket), false, claim);
      }) {
  core_.SetClaimSockets({.open = [this](const Claim& claim) { return claim_sockets_.Open(claim); },
                         .close = [this](const Claim& claim) { claim_sockets_.Close(claim); }});
  quotas_.SetSubordinates(SubordinateUids::Read(SubordinateUids::kPath));
  core_.SetOwnerOf([this](std::uint32_t uid) { return quotas_.OwnerOf(uid); });
  core_.OnReload([this] {
    quotas_.SetLimits(core_.Settings().quota);
    quotas_.SetSubordinates(SubordinateUids::Read(SubordinateUids::kPath));
    SendConfiguration(0);
    ServeMetrics();
  });
  // Later, because the caller may be in the middle of changing the client.
  core_.OnConfigured([this](std::uint64_t client) { host_.Post([this, client] { SendConfiguration(client); }); });
}

void Server::SendConfiguration(std::uint64_t client) {
  shim_sessions_.SendConfiguration(client);
  clients_.sessions.SendConfiguration(client);
  admins_.sessions.SendConfiguration(client);
}

Server::~Server() {
  if (stopper_.joinable()) stopper_.join();
}

Result<void> Server::Equip(Connection& connection, const abi::Layout& layout) {
  auto given = state_.MemoryFor(connection.peer, layout);
  if (!given) return tl::unexpected(given.error());
  connection.channel = std::move(given->channel);
  connection.waiting_id = given->waiting_id;
  return {};
}

void Server::GiveBack(Connection& connection) {
  if (connection.waiting_id == 0) return;
  state_.GiveBack(std::exchange(connection.waiting_id, 0), std::move(connection.channel));
}

Result<void> Server::Start(std::vector<PassedDescriptor> passed) {
  // First: from here on gates bind again.
  state_.Restore(std::move(passed));
  connections_.AcceptShims(core_.IsEnabled());
  const auto charge = [this](std::string peer) {
    host_.Post([this, peer = std::move(peer)] {
      if (const auto connection = connections_.Find(peer, false)) connection->Charge(cost::kCallNs);
    });
  };
  auto serving = StartServing(shims_, {&shim_sessions_.Rpc()}, charge);
  if (serving) serving = StartServing(clients_.rpc, clients_.Services(), charge);
  if (serving) serving = StartServing(admins_.rpc, admins_.Services(), [](const std::string&) {});
  if (!serving) {
    sockets_.Remove();
    return serving;
  }
  AwaitSignal();
  claim_sockets_.Start();
  client_acceptor_.Start();
  admin_acceptor_.Start();
  ServeMetrics();
  return {};
}

Server::Served::Served(Server& server, bool is_admin)
    : admin(server.host_, server.operations_, server.metrics_, is_admin), sessions(server.host_, is_admin) {}

std::vector<grpc::Service*> Server::Served::Services() {
  return {&sessions.Rpc(), &admin.Rpc()};
}

Result<void> Server::StartServing(std::unique_ptr<RpcServer>& rpc, const std::vector<grpc::Service*>& services,
                                  std::function<void(std::string)> on_unknown) {
  auto started = RpcServer::Start(services, std::move(on_unknown));
  if (!started) return tl::unexpected(started.error());
  rpc = std::move(*started);
  return {};
}

RpcServer& Server::RpcOf(const Connection& connection) {
  if (connection.is_admin) return *admins_.rpc;
  return connection.channel != nullptr ? *shims_ : *clients_.rpc;
}

void Server::ServeMetrics() {
  if (UniqueFd given = sockets_.TakeMetrics(); given.IsValid()) {
    metrics_http_.Start(std::move(given));
    metrics_served_.reset();
    SPDLOG_INFO("metrics are served address=\"{}\" socket=systemd", metrics_http_.Address());
    return;
  }
  const MetricsSettings& wanted = core_.Settings().metrics;
  const bool is_systemds = metrics_http_.IsServing() && !metrics_served_;
  if (is_systemds || metrics_served_.value_or(MetricsSettings{}) == wanted) return;
  StopMetrics();
  metrics_served_ = wanted;
  if (!wanted.enabled) return;
  const auto address = ParseListenAddress(wanted.address);
  auto listening = address ? Listen(*address) : tl::unexpected(address.error());
  if (!listening) {
    SPDLOG_ERROR("metrics are not served error=\"{}\"", listening.error().Line());
    return;
  }
  metrics_http_.Start(std::move(*listening));
  SPDLOG_INFO("metrics are served address=\"{}\"", metrics_http_.Address());
  if (!address->IsLoopback())
    SPDLOG_WARN("anybody who can reach this address, even from other machines, can read the metrics");
}

void Server::StopMetrics() {
  const bool is_own = metrics_http_.IsServing() && metrics_served_;
  metrics_http_.Stop();
  if (!is_own) return;
  const auto address = ParseListenAddress(metrics_served_->address);
  if (address && address->kind == ListenAddress::Kind::kUnix) ::unlink(address->host.c_str());
}

void Server::Run() {
  SPDLOG_INFO("ready version={} pid={} policy={} lease_ms={}", kDaemonVersion, ::getpid(),
              policy::Text(core_.Settings().policy.name), core_.Settings().lease_ms);
  manager_.Notify("READY=1");
  FeedWatchdog();
  boost::asio::post(io_, [this] { state_.Serving(); });
  while (!io_.stopped()) {
    if (core_.IsSpinning()) {
      io_.poll();
    } else {
      io_.run_one();
    }
  }
  stopper_.join();
  sockets_.Remove();
  SPDLOG_INFO("stopped");
}

void Server::AwaitSignal() {
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    if (signal != SIGHUP) return Stop();
    OnReload();
    AwaitSignal();
  });
}

void Server::OnReload() {
  manager_.Notify("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(MonotonicNs() / policy::kNsPerUs));
  // A wrong file is logged and changes nothing.
  [[maybe_unused]] const auto reloaded =
      core_.Reload({static_cast<std::uint64_t>(::getpid()), static_cast<std::uint32_t>(::geteuid())});
  manager_.Notify("READY=1");
}

void Server::Stop() {
  SPDLOG_INFO("stopping: all gates open");
  manager_.Notify("STOPPING=1");
  watchdog_.cancel();
  // Stored state stays, for a daemon that may follow.
  state_.Freeze();
  core_.Stop();
  client_acceptor_.Stop();
  admin_acceptor_.Stop();
  claim_sockets_.Stop();
  StopMetrics();
  metrics_.Stop();
  connections_.CloseAll();
  // gRPC may wait for ever if it once ran out of memory, and so may the log if nobody reads it. All that matters to
  // others is done by now.
  std::thread([] {
    std::this_thread::sleep_for(kStopLimit);
    std::quick_exit(EXIT_SUCCESS);
  }).detach();
  // gRPC waits for its reactors, which need the loop.
  stopper_ = std::thread([this] {
    shims_->Stop();
    clients_.rpc->Stop();
    admins_.rpc->Stop();
    // Posted behind what the reactors left in the loop, which frees them.
    boost::asio::post(io_, [this] { io_.stop(); });
  });
}

void Server::FeedWatchdog() {
  if (manager_.WatchdogUs() == 0) return;
  manager_.Ping();
  watchdog_.expires_after(std::chrono::microseconds(manager_.WatchdogUs() / 2));
  watchdog_.async_wait([this](const boost::system::error_code& error) {
    if (!error) FeedWatchdog();
  });
}

}  // namespace xschedd
