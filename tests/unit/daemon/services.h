// The objects that the daemon's services need, with a loop that the test controls; no clients and no service manager.
// Thread rule: the test's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <utility>

#include "daemon/host.h"
#include "tests/unit/daemon/believing.h"

namespace xschedd::test {

// Without root's factor, and with a memory quota of only 64 KiB.
inline Quota SmallQuota() {
  Quota quota;
  quota.root_times = 1;
  quota.memory_kib_per_uid = 64;
  return quota;
}

struct Services {
  // `adopt`, `gone`: as in Connections::Callbacks.
  Services(
      const Quota& quota, std::function<void(const Connection&)> adopt,
      std::function<void(Connection&)> gone = [](Connection&) {})
      : quotas(quota),
        connections(io, quotas,
                    {.adopt = std::move(adopt),
                     .gone = std::move(gone),
                     .refused = [](const Principal&, const std::string&) {},
                     .equip = [](Connection&, const abi::Layout&) -> Result<void> { return {}; },
                     .dropped = [](Connection&) {}}) {}

  Quotas quotas;
  boost::asio::io_context io;  // ends before the quotas: its handlers keep connections
  Core core{io, ConfigSource{}, Believing()};
  ServiceManager manager;  // absent
  DescriptorStore store{manager};
  PersistentState state{io, core, store};
  Connections connections;
  CommandReader commands;
  Host host{io, core, connections, commands, quotas, state};
};

}  // namespace xschedd::test
