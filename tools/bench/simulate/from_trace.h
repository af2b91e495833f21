// Makes a workload from the software GPU's trace (docs/contributing/softgpu.md, "Trace"). Thread rule: pure function of
// the files.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.h"
#include "tools/bench/simulate/workload.h"

namespace xschedd::simulate {

struct TraceOptions {
  // Kernels of a process belong to one request if the next could start less than this after the previous one ended.
  std::uint64_t gap_ns = 200'000;
  // The requests keep their pauses (closed loop) instead of their times (open loop).
  bool is_closed = false;
};

// Reads PREFIX.<pid>.jsonl: a client for each process, of class "pid-<pid>"; kernels and blits become kernels with
// their durations, copies are left out, because the copy engines work beside the compute units.
Result<Workload> FromTrace(const std::string& prefix, const TraceOptions& options);

}  // namespace xschedd::simulate
