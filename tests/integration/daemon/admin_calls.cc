#include "tests/integration/daemon/admin_calls.h"

#include <unistd.h>

#include "tests/catch.h"

namespace xschedd::test {

v1::ListClientsResponse List(DaemonProcess& daemon) {
  grpc::ClientContext context;
  v1::ListClientsResponse response;
  REQUIRE(daemon.Admin().ListClients(&context, {}, &response).ok());
  return response;
}

std::optional<v1::Client> Find(DaemonProcess& daemon, std::uint64_t id) {
  const v1::ListClientsResponse list = List(daemon);
  for (const v1::Client& client : list.clients()) {
    if (client.id() == id) return client;
  }
  return std::nullopt;
}

v1::Stats Stats(DaemonProcess& daemon) {
  grpc::ClientContext context;
  v1::Stats stats;
  REQUIRE(daemon.Admin().GetStats(&context, {}, &stats).ok());
  return stats;
}

std::uint64_t OwnPid() {
  return static_cast<std::uint64_t>(::getpid());
}

}  // namespace xschedd::test
