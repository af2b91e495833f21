// Every metric there is: what it is called, and where its values come from. docs/reference/metrics.md explains each; a
// test compares the two, the dashboard and the alert rules with what is really exposed.
//
// A metric is written in pieces, each small, so that others have their turn in between (metrics_collector.h): once, or
// once for each device, or for each class on a device. Thread rule: the daemon's one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "daemon/connections/connections.h"
#include "daemon/connections/quotas.h"
#include "daemon/core.h"
#include "daemon/telemetry/exposition.h"

namespace xschedd {

// What became of requests for metrics.
struct MetricsCounts {
  std::uint64_t over_http = 0;
  std::uint64_t over_admin_socket = 0;
  std::uint64_t timed_out = 0;
  std::uint64_t bad_requests = 0;
  std::uint64_t displaced = 0;  // by newer connections
  std::uint64_t last_cost_ns = 0;
};

// By device, of this count; none: not known.
using UnscheduledCounts = std::optional<std::map<std::string, std::uint64_t>>;

struct MetricsSources {
  const Core& core;
  const Connections& connections;
  const Quotas& quotas;
  const MetricsCounts& counts;
  const UnscheduledCounts& unscheduled;
};

struct MetricWriter {
  MetricFamily family;
  enum class Each { kOnce, kDevice, kAccount } each;
  // Nothing need be written. `place`: among Meter::Devices() or Meter::Accounts(), or 0.
  void (*write)(const MetricsSources& sources, std::size_t place, Exposition& out);
};

std::span<const MetricWriter> MetricWriters();

}  // namespace xschedd
