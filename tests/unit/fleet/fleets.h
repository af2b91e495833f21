// What the tests of the fleet simulator share.
#pragma once

#include <sstream>
#include <string>

#include "tests/catch.h"
#include "tools/bench/fleet/fleet_simulation.h"
#include "tools/bench/fleet/trace.h"

namespace xschedd::fleet {

// A GPU that runs one kernel at a time. `work`: kernels of 1 ms without end. `idle`: a request of 1 ms a second.
inline Patterns TestPatterns() {
  std::istringstream input(R"({"workload": "t", "seconds": 1}
{"client": "work", "arrivals": {"kind": "saturating", "depth": 4}, "kernels": [{"us": 1000}]}
{"client": "idle", "arrivals": {"kind": "periodic", "period_ms": 1000}, "kernels": [{"us": 1000}]}
)");
  Result<Patterns> patterns = ReadPatterns(input, "patterns");
  REQUIRE(patterns);
  return *patterns;
}

inline Trace ReadLines(const std::string& lines) {
  std::istringstream input(lines);
  Trace trace;
  const Result<void> done = ReadTrace(input, "trace", trace);
  INFO((done ? "" : done.error().Line()));
  REQUIRE(done);
  REQUIRE(FinishTrace(trace));
  return trace;
}

struct Run {
  Patterns patterns = TestPatterns();
  simulate::Parameters parameters;

  FleetResults Of(const Trace& trace, const FleetOptions& options) {
    const Result<std::vector<std::uint32_t>> job_patterns = JobPatterns(trace, patterns, options.size);
    REQUIRE(job_patterns);
    Mixes mixes(patterns, parameters, 1, 4);
    return SimulateFleet(trace, *job_patterns, patterns, mixes, options);
  }
};

}  // namespace xschedd::fleet
