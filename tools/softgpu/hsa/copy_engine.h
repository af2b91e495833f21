// The copy engines (SDMA) of a device, as one process sees them: one thread per engine takes copies in order, waits for
// their dependencies, gets their start and end from the device model, moves the bytes, and completes the signal. Copies
// overlap with dispatches. The engines are shared between processes through their calendars. Thread rule: submit from
// any thread.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "tools/softgpu/hsa/runtime.h"
#include "tools/softgpu/model/duration.h"

namespace softgpu {

struct CopyJob {
  const char* name;  // for the trace
  uint64_t bytes;
  CopyPath path;
  std::vector<hsa_signal_t> dependencies;
  hsa_signal_t completion;     // may be null
  std::function<void()> move;  // moves the bytes
};

// Chooses device, engine and path by the locations of source and destination.
void submit_copy(Agent& to, Agent& from, CopyJob job);

}  // namespace softgpu
