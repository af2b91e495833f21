// Every metric: its name, and where its values come from. docs/reference/metrics.md explains each; a test compares that
// page, the dashboard and the alert rules with what is exposed.
//
// A metric is written in small pieces (metrics_collector.h): once, once per device, or once per class on a device.
// Thread rule: the daemon's one thread.
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

// Outcomes of requests for metrics.
struct MetricsCounts {
  std::uint64_t over_http = 0;
  std::uint64_t over_admin_socket = 0;
  std::uint64_t timed_out = 0;
  std::uint64_t bad_requests = 0;
  std::uint64_t displaced = 0;  // by newer connections
  std::uint64_t last_cost_ns = 0;
};

// By device; none: unknown.
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
  // May write nothing. `place`: the index in Meter::Devices() or Meter::Accounts(), else 0.
  void (*write)(const MetricsSources& sources, std::size_t place, Exposition& out);
};

std::span<const MetricWriter> MetricWriters();

}  // namespace xschedd
