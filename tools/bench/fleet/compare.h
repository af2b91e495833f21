// One trace on one fleet in three ways: GPUs of their own for all jobs, shared without xschedd, shared by claims.
// Thread rule: pure functions; they use as many threads as there are ways.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/bench/fleet/fleet_simulation.h"

namespace xschedd::fleet {

struct CompareOptions {
  FleetOptions fleet;  // `shares` is set for each way
  simulate::Parameters parameters;
  double mix_warm_up_s = 30;
  double mix_seconds = 120;
  bool finds_needed = true;
};

struct Way {
  std::string name;  // "exclusive", "shared", "claims"
  FleetResults results;
  // The fewest nodes with which no space waits longer on average than it does exclusively on all nodes, to one percent
  // of these; nothing: all nodes are not enough, or nobody looked.
  std::optional<std::uint32_t> needed_nodes;
  std::uint32_t simulated_mixes = 0;
};

struct Comparison {
  std::vector<Way> ways;
  std::vector<Latencies> alone;  // of each pattern, alone on a GPU
};

Result<Comparison> Compare(const Trace& trace, const Patterns& patterns, const CompareOptions& options);

}  // namespace xschedd::fleet
