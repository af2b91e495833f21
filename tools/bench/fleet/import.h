// Makes a trace of what an engine keeps of its jobs. Neither Slurm nor Kubernetes knows how a job uses its GPU: the
// spaces of the trace have the pattern "train" and no shards, for the site to change. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "common/result.h"
#include "tools/bench/fleet/trace.h"

namespace xschedd::fleet {

struct Imported {
  Trace trace;
  std::uint64_t left_out = 0;  // records without GPUs, that never started, or of a job's steps
};

// The output of `sacct -a -X --parsable2 --format=JobID,Partition,Submit,ElapsedRaw,TimelimitRaw,ReqTRES`, in any order
// of columns, with others between them. Seconds are the time for which the job ran.
Result<Imported> FromSacct(std::istream& input, const std::string& source);

// The output of `kubectl get pods -A -o json`, or such objects and pods one after the other, as `-w` writes them: the
// last record of a pod counts. A pod that still runs has run until the latest time in the records.
Result<Imported> FromPods(std::istream& input, const std::string& source);

}  // namespace xschedd::fleet
