// The jobs of a site, as its engine got them: when each came, what it asked for, and how much work it had.
// docs/contributing/fleet-simulator.md describes the file format. Thread rule: values and pure functions.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "common/result.h"

namespace xschedd::fleet {

inline constexpr double kHourS = 3600;
inline constexpr double kDayS = 24 * kHourS;

// What a job asks its engine for: whole GPUs, or shards of one GPU.
struct Demand {
  std::uint32_t gpus = 1;    // 0: shards
  std::uint32_t shards = 0;  // of one GPU; 0: whole GPUs
  bool operator==(const Demand&) const = default;
};

// Slurm's partition, Kubernetes' namespace. Its values count for jobs of it that have none of their own.
struct Space {
  std::string name;
  std::uint32_t tier = 1;  // Slurm's PriorityTier, or the priority of its pods: larger is first
  int priority = 0;        // on the GPU, by claim
  std::string pattern;     // how its jobs use a GPU
  // A job that asks for one GPU takes so many shards of one, where GPUs are shared; 0: a whole one there, too.
  std::uint32_t shards = 0;
  double limit_s = 0;  // time limit; 0: none
};

struct Job {
  std::string name;
  std::uint32_t space = 0;  // index into Trace::spaces
  double arrival_s = 0;
  // Of its work when it has the GPU to itself. A job whose pattern never ends by itself runs for so long in any case.
  double seconds = 0;
  double limit_s = 0;  // what its engine believes about its length; 0: nothing
  Demand demand;
  int priority = 0;
  std::string pattern;
};

struct Trace {
  std::vector<Space> spaces;
  std::vector<Job> jobs;  // in order of arrival
};

// Reads JSON lines and adds them to `trace`, which FinishTrace completes. An error names `source`, line and field.
Result<void> ReadTrace(std::istream& input, const std::string& source, Trace& trace);

// Sorts the jobs. A trace without jobs is an error.
Result<void> FinishTrace(Trace& trace);

// Writes what ReadTrace reads.
void WriteTrace(const Trace& trace, std::ostream& output);

}  // namespace xschedd::fleet
