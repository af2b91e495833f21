// hsa_amd_memory_async_copy* and the time stamps of copies and dispatches. Thread rule: any thread.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <cstring>

#include "tools/softgpu/hsa/copy_engine.h"
#include "tools/softgpu/hsa/memory.h"
#include "tools/softgpu/hsa/runtime.h"
#include "tools/softgpu/hsa/signal.h"

namespace softgpu {

namespace {

std::vector<hsa_signal_t> list(uint32_t count, const hsa_signal_t* signals) {
  return count > 0 ? std::vector<hsa_signal_t>(signals, signals + count) : std::vector<hsa_signal_t>{};
}

struct Rectangle {
  hsa_pitched_ptr_t to;
  hsa_dim3_t to_offset;
  hsa_pitched_ptr_t from;
  hsa_dim3_t from_offset;
  hsa_dim3_t size;  // x in bytes
};

unsigned char* row(const hsa_pitched_ptr_t& p, const hsa_dim3_t& offset, uint32_t y, uint32_t z) {
  return static_cast<unsigned char*>(host_address(p.base)) + offset.x + (offset.y + y) * p.pitch +
         (offset.z + z) * p.slice;
}

void move_rectangle(const Rectangle& r) {
  for (uint32_t z = 0; z < r.size.z; ++z) {
    for (uint32_t y = 0; y < r.size.y; ++y) {
      std::memmove(row(r.to, r.to_offset, y, z), row(r.from, r.from_offset, y, z), r.size.x);
    }
  }
}

}  // namespace

SOFTGPU_API hsa_status_t hsa_amd_memory_async_copy(void* to, hsa_agent_t to_agent, const void* from,
                                                   hsa_agent_t from_agent, size_t size, uint32_t dependencies,
                                                   const hsa_signal_t* dependency, hsa_signal_t completion) {
  Runtime* rt = runtime();
  if (rt == nullptr) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  Agent* t = rt->agent(to_agent);
  Agent* f = rt->agent(from_agent);
  if (t == nullptr || f == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  if (to == nullptr || from == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  submit_copy(*t, *f, {"copy", size, CopyPath::kHostToDevice, list(dependencies, dependency), completion, [=] {
                         std::memmove(host_address(to), host_address(from), size);
                       }});
  return HSA_STATUS_SUCCESS;
}

// The engine is ignored: submit_copy chooses it.
SOFTGPU_API hsa_status_t hsa_amd_memory_async_copy_on_engine(void* to, hsa_agent_t to_agent, const void* from,
                                                             hsa_agent_t from_agent, size_t size, uint32_t dependencies,
                                                             const hsa_signal_t* dependency, hsa_signal_t completion,
                                                             uint32_t, bool) {
  return hsa_amd_memory_async_copy(to, to_agent, from, from_agent, size, dependencies, dependency, completion);
}

SOFTGPU_API hsa_status_t hsa_amd_memory_copy_engine_status(hsa_agent_t, hsa_agent_t, uint32_t* mask) {
  if (mask == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  *mask = (1u << kCopyEngines) - 1;
  return HSA_STATUS_SUCCESS;
}
SOFTGPU_API hsa_status_t hsa_amd_memory_get_preferred_copy_engine(hsa_agent_t to, hsa_agent_t from, uint32_t* mask) {
  return hsa_amd_memory_copy_engine_status(to, from, mask);
}

SOFTGPU_API hsa_status_t hsa_amd_memory_async_copy_rect(const hsa_pitched_ptr_t* to, const hsa_dim3_t* to_offset,
                                                        const hsa_pitched_ptr_t* from, const hsa_dim3_t* from_offset,
                                                        const hsa_dim3_t* size, hsa_agent_t agent,
                                                        hsa_amd_copy_direction_t direction, uint32_t dependencies,
                                                        const hsa_signal_t* dependency, hsa_signal_t completion) {
  Runtime* rt = runtime();
  if (rt == nullptr) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  Agent* gpu = rt->agent(agent);
  if (gpu == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  const Rectangle r{*to, *to_offset, *from, *from_offset, *size};
  const bool to_host = direction == hsaDeviceToHost || direction == hsaHostToHost;
  const bool from_host = direction == hsaHostToDevice || direction == hsaHostToHost;
  submit_copy(to_host ? rt->cpu() : *gpu, from_host ? rt->cpu() : *gpu,
              {"copy_rect", uint64_t{size->x} * size->y * size->z, CopyPath::kHostToDevice,
               list(dependencies, dependency), completion, [r] { move_rectangle(r); }});
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_profiling_async_copy_enable(bool) {
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_profiling_get_async_copy_time(hsa_signal_t signal,
                                                               hsa_amd_profiling_async_copy_time_t* time) {
  if (signal.handle == 0 || time == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  *time = {Signal::from(signal)->abi.start_ts, Signal::from(signal)->abi.end_ts};
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_profiling_get_dispatch_time(hsa_agent_t, hsa_signal_t signal,
                                                             hsa_amd_profiling_dispatch_time_t* time) {
  if (signal.handle == 0 || time == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  *time = {Signal::from(signal)->abi.start_ts, Signal::from(signal)->abi.end_ts};
  return HSA_STATUS_SUCCESS;
}

// Device time is system time: see model/clock.h.
SOFTGPU_API hsa_status_t hsa_amd_profiling_convert_tick_to_system_domain(hsa_agent_t, uint64_t tick, uint64_t* system) {
  if (system == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  *system = tick;
  return HSA_STATUS_SUCCESS;
}

}  // namespace softgpu
