// How jobs use a GPU: the clients of a workload of the node simulator, each on its own, and the device that they are on
// (docs/contributing/simulator.md, "Workloads"). Thread rule: values and pure functions.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "tools/bench/simulate/workload.h"

namespace xschedd::fleet {

struct Pattern {
  simulate::ClientSpec client;
  // Its jobs end when their work is done: it always has work. Others, whose work comes from outside, run for the time
  // that their job says.
  bool ends_with_work = false;
  // Requests have a latency that somebody waits for.
  bool has_latency = false;
};

struct Patterns {
  simulate::DeviceKind device;
  std::vector<Pattern> all;

  std::optional<std::uint32_t> Find(std::string_view name) const;
};

// Reads a workload file. A client that cannot stand for a job is an error: one on several devices, in a group, or whose
// requests are given as a list, because a list ends and a job goes on.
Result<Patterns> ReadPatterns(std::istream& input, const std::string& source);

}  // namespace xschedd::fleet
