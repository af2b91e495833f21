// Replays a workload through the policy in virtual time. docs/contributing/simulator.md describes the model. The same
// workload, parameters and seed give the same results. Thread rule: one thread per simulation.
#pragma once

#include "tools/bench/simulate/parameters.h"
#include "tools/bench/simulate/results.h"
#include "tools/bench/simulate/workload.h"

namespace xschedd::simulate {

Results Simulate(const Workload& workload, const Parameters& parameters);

}  // namespace xschedd::simulate
