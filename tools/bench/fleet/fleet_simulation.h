// A trace of jobs on the nodes of a fleet, in virtual time. What happens on one GPU comes from the node simulator
// (mixes.h); this adds who waits in the space, who is on which GPU with whom, and when it ends. The same trace, options
// and mixes give the same results. Thread rule: one thread per simulation.
#pragma once

#include <functional>
#include <vector>

#include "tools/bench/fleet/engine.h"
#include "tools/bench/fleet/mixes.h"
#include "tools/bench/fleet/trace.h"

namespace xschedd::fleet {

struct FleetOptions {
  FleetSize size;
  EngineKind engine = EngineKind::kSlurm;
  Placing placing = Placing::kDefault;
  bool shares = false;  // jobs that ask for shards get shards; otherwise a whole GPU
  // What is counted: what happens in this time, and the waits of jobs that arrive in it. Nothing is simulated after it.
  double from_s = 0;
  double to_s = kNever;
  // Of each space, all waits together that are not too long; empty: nothing is. After more, the simulation stops.
  std::vector<double> most_wait_s = {};
  std::function<void(double now_s, const Inventory&)> watch = {};  // for tests: after each pass of the engine
};

struct SpaceResult {
  std::vector<double> waits_s;  // sorted; of jobs that arrived in the time; of those that still wait, until its end
  double sum_s = 0;
  std::uint64_t waiting = 0;  // of these, still waiting at the end

  double MeanS() const;
  double QuantileS(double fraction) const;  // nearest rank; NaN without jobs
};

struct PatternResult {
  double gpu_s = 0;         // its jobs' time on GPUs; of two jobs on one GPU for a second: two
  double work_s = 0;        // its jobs' work, in seconds alone on a GPU
  Latencies latencies;      // of all requests
  std::uint64_t ended = 0;  // jobs that ended
  double stretch = 0;       // sum over these: their time from start to end relative to their work's alone
};

struct FleetResults {
  double counted_s = 0;  // length of the time that is counted
  std::uint32_t nodes = 0;
  std::uint32_t gpus = 0;  // of all nodes
  double used_gpu_s = 0;   // GPUs with a job
  double busy_gpu_s = 0;   // with a running kernel
  std::uint32_t most_used_gpus = 0;
  std::uint64_t started = 0;
  std::uint64_t ended = 0;
  std::uint64_t past_limit = 0;         // of these, after their time limit, at which Slurm would have ended them
  std::vector<SpaceResult> spaces;      // as in the trace
  std::vector<PatternResult> patterns;  // as in the patterns
  std::uint32_t mixes = 0;              // distinct ones
  bool waits_too_long = false;          // by FleetOptions::most_wait_s; nothing else is then complete
};

// `job_patterns`: of each job of the trace, the index of its pattern. Every job can be held by the inventory.
FleetResults SimulateFleet(const Trace& trace, const std::vector<std::uint32_t>& job_patterns, const Patterns& patterns,
                           Mixes& mixes, const FleetOptions& options);

// The patterns of all jobs; an error names the first job whose pattern or demand is unknown or too large.
Result<std::vector<std::uint32_t>> JobPatterns(const Trace& trace, const Patterns& patterns, const FleetSize& size);

}  // namespace xschedd::fleet
