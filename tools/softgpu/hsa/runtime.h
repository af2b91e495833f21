// The one instance of the software GPU in a process: made by the first hsa_init, never destroyed, because the HIP
// runtime calls into this library from static destructors. A child of fork lacks this library's threads: it is `inert`,
// calls return an error at once, waits return at once, and it does not count as a user of the shared devices. Thread
// rule: runtime() may be called by any thread after hsa_init has returned.
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/softgpu/model/duration.h"
#include "tools/softgpu/model/region.h"
#include "tools/softgpu/model/settings.h"
#include "tools/softgpu/model/trace.h"

// hsa_* functions are the only symbols this library exports; the version script gives them their node.
#define SOFTGPU_API extern "C" __attribute__((visibility("default")))

namespace softgpu {

struct Agent;

struct MemoryPool {
  Agent* agent;
  hsa_amd_segment_t segment;
  uint32_t global_flags;  // hsa_amd_memory_pool_global_flag_t
  uint64_t size;
};

struct Agent {
  hsa_device_type_t type;
  uint32_t ordinal;  // among all agents of its type, including those hidden from this process
  PciAddress pci;
  std::vector<std::unique_ptr<MemoryPool>> pools;

  bool is_gpu() const { return type == HSA_DEVICE_TYPE_GPU; }
  hsa_agent_t handle() const { return {reinterpret_cast<uint64_t>(this)}; }
};

struct Runtime {
  Settings settings;
  Region region;
  DurationTable durations;
  Trace trace;
  std::string isa_name;                        // full target id: amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-
  std::vector<std::unique_ptr<Agent>> agents;  // the CPU first, then the GPUs

  Agent& cpu() { return *agents[0]; }
  // Null if it is hidden from this process.
  Agent* gpu(uint32_t ordinal);
  // Null for an unknown handle.
  Agent* agent(hsa_agent_t handle);
  MemoryPool* pool(hsa_amd_memory_pool_t handle);
};

// Null before the first hsa_init that succeeded, and in a child of fork.
Runtime* runtime();
bool inert();

// Starts a detached thread with all signals blocked, so that the program's handlers run on its own threads, and with
// exact timers.
void start_thread(const char* name, std::function<void()> body);

}  // namespace softgpu
