// What a simulation is run with, besides its workload: the policy's settings and how long the parts around it take.
// Thread rule: values and pure functions.
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
  // Nobody decides and every gate is open: the reference.
  bool unscheduled = false;
  // From a gate that opens to its waiting thread that runs. Measured: 60 to 90 µs (docs/explanation/policies.md,
  // "Linger").
  std::uint32_t wake_us = 60;
  // From a transition to the gates that follow from it.
  std::uint32_t decision_us = 30;
  // From a marker that is reached to the thread, whose window was full, that sees it.
  std::uint32_t poll_us = 60;
  // GPU time from one marker to the next, by which the daemon hears of it; 0: as in the shim.
  std::uint32_t report_us = 0;
  std::uint64_t seed = 1;
};

// "window_us=200": a field of Settings or Parameters by its name. An unknown name or a value out of range is an error.
Result<void> Set(Parameters& parameters, std::string_view name, std::uint32_t value);

// All names that Set knows.
std::vector<std::string> Names();

}  // namespace xschedd::simulate
