// The parameters of a simulation besides its workload: the policy's settings, and the latencies around it. Thread rule:
// values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "daemon/policy/types.h"

namespace xschedd::simulate {

struct Parameters {
  policy::Settings settings;
  // No decisions, all gates open: the reference.
  bool unscheduled = false;
  // From the opening of a gate until its waiting thread runs. Measured: 60 to 90 µs (docs/explanation/policies.md,
  // "Linger").
  std::uint32_t wake_us = 60;
  // From a transition to the gates that follow from it.
  std::uint32_t decision_us = 30;
  // From a reached marker until a thread that waits for its window sees it.
  std::uint32_t poll_us = 60;
  // GPU time between two markers, and so between reports to the daemon; 0: as in the shim.
  std::uint32_t report_us = 0;
  std::uint64_t seed = 1;
};

// "window_us=200": a field of Settings or Parameters by its name. An unknown name or a value out of range is an error.
Result<void> Set(Parameters& parameters, std::string_view name, std::uint32_t value);

// "window_us=100,200".
struct Assignment {
  std::string name;
  std::vector<std::uint32_t> values;
};
Result<Assignment> ParseAssignment(const std::string& text);

// An assignment of one value, as Set.
Result<void> SetByText(Parameters& parameters, const std::string& text);

// All names that Set knows.
std::vector<std::string> Names();

}  // namespace xschedd::simulate
