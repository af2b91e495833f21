#include "daemon/server.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <csignal>

#include "common/clock.h"
#include "daemon/build_config.h"
#if XSCHEDD_HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

namespace xschedd {
namespace {

constexpr unsigned kStopLimitS = 5;

}  // namespace

Server::Server(ConfigSource source, Config config, ListeningSockets sockets)
    : io_(1),
      keep_running_(io_.get_executor()),
      sockets_(std::move(sockets)),
      signals_(io_, SIGTERM, SIGINT, SIGHUP),
      core_(io_, std::move(source), std::move(config)),
      connections_(io_, {.adopt = [this](int fd) { rpc_->Adopt(fd); },
                         .gone =
                             [this](Connection& connection) {
                               core_.RemoveClient(connection.client_id, "its connection closed or it exited");
                               connection.client_id = 0;
                             },
                         .refused = [this](const std::string& why) { core_.Refused(why); }}),
      host_{io_, core_, connections_, commands_},
      operations_(core_, connections_),
      admin_service_(host_, operations_),
      session_service_(host_),
      client_acceptor_(io_, sockets_.Client(),
                       [this](UniqueFd socket) { connections_.Accept(std::move(socket), false); }),
      admin_acceptor_(io_, sockets_.Admin(),
                      [this](UniqueFd socket) { connections_.Accept(std::move(socket), true); }) {
  connections_.SetQuota(core_.Settings().quota.connections_per_uid);
  core_.OnReload([this] {
    connections_.SetQuota(core_.Settings().quota.connections_per_uid);
    session_service_.SendConfiguration();
  });
}

Server::~Server() {
  if (stopper_.joinable()) stopper_.join();
}

Result<void> Server::Start() {
  auto rpc = RpcServer::Start({&session_service_, &admin_service_});
  if (!rpc) {
    sockets_.Remove();
    return tl::unexpected(rpc.error());
  }
  rpc_ = std::move(*rpc);
  AwaitSignal();
  client_acceptor_.Start();
  admin_acceptor_.Start();
  return {};
}

void Server::Run() {
  SPDLOG_INFO("ready version={} pid={} policy={} lease_ms={}", kDaemonVersion, ::getpid(),
              policy::Text(core_.Settings().policy.name), core_.Settings().lease_ms);
  Notify("READY=1");
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
  Notify(("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(MonotonicNs() / policy::kNsPerUs)).c_str());
  // A wrong file is logged and changes nothing.
  [[maybe_unused]] const auto reloaded =
      core_.Reload({static_cast<std::uint64_t>(::getpid()), static_cast<std::uint32_t>(::geteuid())});
  Notify("READY=1");
}

void Server::Stop() {
  SPDLOG_INFO("stopping: all gates open");
  Notify("STOPPING=1");
  core_.Stop();
  client_acceptor_.Stop();
  admin_acceptor_.Stop();
  connections_.CloseAll();
  // Where it once had no memory gRPC may wait for ever. All that matters to others is done by now.
  std::signal(SIGALRM, [](int) { ::_exit(0); });
  ::alarm(kStopLimitS);
  // gRPC waits for its reactors, and these need the loop.
  stopper_ = std::thread([this] {
    rpc_->Stop();
    io_.stop();
  });
}

void Server::Notify([[maybe_unused]] const char* state) {
#if XSCHEDD_HAVE_SYSTEMD
  sd_notify(0, state);
#endif
}

}  // namespace xschedd
