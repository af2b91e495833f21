// A workload from what the software GPU wrote (docs/contributing/softgpu.md, "Trace"). Thread rule: pure function of
// the files.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.h"
#include "tools/bench/simulate/workload.h"

namespace xschedd::simulate {

struct TraceOptions {
  // Kernels of a process belong to one request where the next could start less than this after the one before ended.
  std::uint64_t gap_ns = 200'000;
  // The requests keep their distance (closed loop) and not their times (open loop).
  bool is_closed = false;
};

// Reads PREFIX.<pid>.jsonl: a client a process, of class "pid-<pid>"; kernels and blits become kernels with their
// durations, copies are left out, because the copy engines work beside the compute units.
Result<Workload> FromTrace(const std::string& prefix, const TraceOptions& options);

}  // namespace xschedd::simulate
