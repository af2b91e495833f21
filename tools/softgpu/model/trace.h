// SOFTGPU_TRACE: a file for each process, <prefix>.<pid>.jsonl, with one JSON object per line for each finished
// dispatch and copy. docs/contributing/softgpu.md gives the fields. Contract: one write(2) per record, to a file opened
// for appending: records completed before a kill are in the file, and lines are never torn. A file that cannot be
// written is reported once; work goes on. Thread rule: any thread.
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
  uint32_t units;        // compute units held; 0 for copies
  const char* priority;  // the queue's, as it was set: "low", "normal" or "high"; null for copies
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
