// SOFTGPU_TRACE: a file for each process, <prefix>.<pid>.jsonl, with one JSON object a line for each finished dispatch
// and copy. docs/contributing/softgpu.md gives the fields. Contract: one write(2) a record, to a file opened for
// appending: what is complete when a process is killed is in the file, and lines are never torn. A file that cannot be
// written is told once; work goes on. Thread rule: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace softgpu {

struct TraceRecord {
  const char* kind;  // "kernel", "blit" (the HIP runtime's own copy and fill kernels) or "copy"
  const char* name;
  uint32_t device;
  uint32_t queue;
  uint32_t units;  // compute units held; 0 for copies
  uint64_t arrival_ns;
  uint64_t start_ns;
  uint64_t end_ns;
};

class Trace {
 public:
  // An empty prefix: no trace.
  void open(const std::string& prefix);
  void write(const TraceRecord& record);

 private:
  std::atomic<int> fd_{-1};  // relaxed everywhere: a plain value that writers may turn to -1
};

}  // namespace softgpu
