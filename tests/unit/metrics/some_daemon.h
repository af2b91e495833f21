// An idle daemon whose metrics are counted. Thread rule: the test's thread.
#pragma once

#include "daemon/metrics/metrics_collector.h"
#include "tests/unit/daemon/believing.h"

namespace xschedd::test {

struct SomeDaemon {
  Quotas quotas{Quota{}};
  boost::asio::io_context io;  // ends before the quotas: its handlers keep connections
  Core core{io, ConfigSource{}, Believing()};
  Connections connections{io, quotas, {}};
  MetricsCollector collector{io, core, connections, quotas};

  void Run(const bool& until) {
    while (!until)
      io.run_one();
  }
};

}  // namespace xschedd::test
