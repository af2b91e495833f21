// Makes the trace of a site that does not exist: services, notebooks, batch jobs of one GPU and training on several, in
// such numbers that GPUs of their own would be used to a given part. docs/contributing/fleet-simulator.md has the
// numbers. Thread rule: pure function; the same values give the same trace everywhere.
#pragma once

#include <cstdint>

#include "tools/bench/fleet/inventory.h"
#include "tools/bench/fleet/trace.h"

namespace xschedd::fleet {

struct MadeSite {
  FleetSize size;
  double days = 3;
  // What the jobs need on average if each has GPUs of its own, relative to the GPUs there are.
  double load = 1;
  std::uint64_t seed = 1;
};

Trace MakeSite(const MadeSite& site);

}  // namespace xschedd::fleet
