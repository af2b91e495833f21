// The table of connections; in place of gRPC, it records the sockets that gRPC would adopt. Thread rule: the test's
// thread.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/preamble_client.h"
#include "daemon/connections/connections.h"
#include "tests/catch.h"
#include "tests/unit/daemon/loop.h"

namespace xschedd::test {

inline void SayHelloOf(const UniqueFd& shim) {
  const PreambleHello hello = MakeHello();
  Say(shim, {reinterpret_cast<const char*>(&hello), sizeof hello});
}

inline constexpr std::string_view kPlain = "PRI * HTTP/2.0\r\n\r\n";  // what a plain client says first

struct Table {
  Table()
      : connections(io, quotas,
                    {.adopt = [this](const Connection& connection) { adopted.emplace_back(connection.fd); },
                     .gone = [this](Connection& connection) { gone.push_back(connection.fd); },
                     .refused = [this](const Principal&, const std::string& why) { refused.push_back(why); },
                     .equip = [](Connection& connection, const abi::Layout& layout) -> Result<void> {
                       auto channel = Channel::Make(layout);
                       if (!channel) return tl::unexpected(channel.error());
                       connection.channel = std::move(*channel);
                       return {};
                     },
                     .dropped = [](Connection&) {},
                     .locate = [this](Connection& connection) { connection.who.place = place; }},
                    // Shorter than a user gets, but long enough for tests on a busy machine.
                    {.unused = std::chrono::seconds(2), .refused = std::chrono::seconds(1)}) {}
  ~Table() { connections.CloseAll(); }

  // Connects a plain client and waits until it is admitted. Returns the peer's end of the socket.
  UniqueFd Admit() {
    Pair pair;
    const std::size_t before = adopted.size();
    Say(pair.peers, kPlain);
    connections.Accept(std::move(pair.ours), false);
    REQUIRE(RunUntil(io, [&] { return adopted.size() > before; }));
    return std::move(pair.peers);
  }
  // Connects a peer that has not sent anything yet.
  UniqueFd Connect() {
    Pair pair;
    connections.Accept(std::move(pair.ours), false);
    return std::move(pair.peers);
  }
  void AllowConnections(std::uint32_t per_uid) {
    Quota limits;
    limits.connections_per_uid = per_uid;
    limits.root_times = 1;
    quotas.SetLimits(limits);
  }
  // Looks on both sockets.
  std::shared_ptr<Connection> Find(int fd) {
    const std::string name = "fd:" + std::to_string(fd);
    const auto found = connections.Find(name, false);
    return found != nullptr ? found : connections.Find(name, true);
  }

  Quotas quotas{Quota{}};
  boost::asio::io_context io;             // ends before the quotas: its handlers keep connections
  boost::asio::steady_timer reactor{io};  // makes the loop's own descriptors while there are some
  std::vector<UniqueFd> adopted;
  std::vector<int> gone;
  std::vector<std::string> refused;
  std::string place;  // of the next peer that connects
  Connections connections;
};

}  // namespace xschedd::test
