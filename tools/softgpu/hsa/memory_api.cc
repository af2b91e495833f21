// Memory pools, locking of host memory, pointer queries, and the synchronous hsa_memory_* calls.
// Thread rule: any thread.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tools/softgpu/hsa/answer.h"
#include "tools/softgpu/hsa/memory.h"
#include "tools/softgpu/hsa/newer_hsa.h"
#include "tools/softgpu/hsa/runtime.h"

namespace softgpu {

namespace {

constexpr size_t kGranule = 4096;

}  // namespace

SOFTGPU_API hsa_status_t hsa_amd_agent_iterate_memory_pools(hsa_agent_t handle,
                                                            hsa_status_t (*callback)(hsa_amd_memory_pool_t, void*),
                                                            void* data) {
  Runtime* rt = runtime();
  Agent* agent = rt != nullptr ? rt->agent(handle) : nullptr;
  if (agent == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  for (auto& pool : agent->pools) {
    const hsa_status_t status = callback({reinterpret_cast<uint64_t>(pool.get())}, data);
    if (status != HSA_STATUS_SUCCESS) return status;
  }
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t handle,
                                                      hsa_amd_memory_pool_info_t attribute, void* value) {
  Runtime* rt = runtime();
  const MemoryPool* pool = rt != nullptr ? rt->pool(handle) : nullptr;
  if (pool == nullptr || value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  const bool allocatable = pool->segment == HSA_AMD_SEGMENT_GLOBAL;
  switch (static_cast<int>(attribute)) {
    case HSA_AMD_MEMORY_POOL_INFO_SEGMENT:
      return answer(value, pool->segment);
    case HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS:
      return answer(value, pool->global_flags);
    case HSA_AMD_MEMORY_POOL_INFO_SIZE:
    case HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE:
      return answer(value, static_cast<size_t>(pool->size));
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED:
      return answer(value, allocatable);
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE:
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT:
    case kPoolInfoAllocRecGranule:
      return answer(value, allocatable ? kGranule : size_t{0});
    case HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL:
      return answer(value, !pool->agent->is_gpu());
    case kPoolInfoLocation:
      return answer(value, pool->agent->is_gpu() ? 1 : 0);
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}

SOFTGPU_API hsa_status_t hsa_amd_agent_memory_pool_get_info(hsa_agent_t agent_handle, hsa_amd_memory_pool_t pool_handle,
                                                            hsa_amd_agent_memory_pool_info_t attribute, void* value) {
  Runtime* rt = runtime();
  Agent* agent = rt != nullptr ? rt->agent(agent_handle) : nullptr;
  const MemoryPool* pool = rt != nullptr ? rt->pool(pool_handle) : nullptr;
  if (agent == nullptr || pool == nullptr || value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  const bool local = pool->agent == agent;
  switch (attribute) {
    case HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS: {
      hsa_amd_memory_pool_access_t access = HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT;
      if (pool->segment == HSA_AMD_SEGMENT_GROUP) {
        access = HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED;
      } else if (local || !pool->agent->is_gpu()) {
        access = HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT;
      }
      return answer(value, access);
    }
    case HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS:
      return answer(value, local ? uint32_t{0} : uint32_t{1});
    case HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO: {
      if (local) return HSA_STATUS_SUCCESS;
      hsa_amd_memory_pool_link_info_t link{};
      const bool peers = agent->is_gpu() && pool->agent->is_gpu();
      link.min_latency = link.max_latency = 1;
      link.min_bandwidth = link.max_bandwidth = peers ? 45'000 : 50'000;
      link.atomic_support_32bit = link.atomic_support_64bit = link.coherent_support = true;
      link.link_type = peers ? HSA_AMD_LINK_INFO_TYPE_XGMI : HSA_AMD_LINK_INFO_TYPE_PCIE;
      link.numa_distance = peers ? 15 : 20;
      return answer(value, link);
    }
  }
  return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

SOFTGPU_API hsa_status_t hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t handle, size_t size, uint32_t,
                                                      void** memory) {
  Runtime* rt = runtime();
  if (rt == nullptr) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  const MemoryPool* pool = rt->pool(handle);
  if (pool == nullptr || memory == nullptr || size == 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (pool->segment != HSA_AMD_SEGMENT_GLOBAL) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
  *memory = allocate(*pool, size);
  return *memory != nullptr ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

SOFTGPU_API hsa_status_t hsa_amd_memory_pool_free(void* memory) {
  if (memory == nullptr || inert()) return HSA_STATUS_SUCCESS;
  return release(memory);
}

// Every agent can access all memory, because it is host memory.
SOFTGPU_API hsa_status_t hsa_amd_agents_allow_access(uint32_t, const hsa_agent_t*, const uint32_t*,
                                                     const void* memory) {
  return memory != nullptr ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

SOFTGPU_API hsa_status_t hsa_amd_memory_lock_to_pool(void* host, size_t size, hsa_agent_t*, int, hsa_amd_memory_pool_t,
                                                     uint32_t, void** agent_pointer) {
  Runtime* rt = runtime();
  if (rt == nullptr) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  if (host == nullptr || size == 0 || agent_pointer == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  const auto known = find_allocation(host);
  if (known && known->kind != MemoryKind::kLocked) {
    *agent_pointer = host;  // memory of the software GPU has one address
    return HSA_STATUS_SUCCESS;
  }
  add_allocation({reinterpret_cast<uintptr_t>(host), size, MemoryKind::kLocked, &rt->cpu(),
                  HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED, -1, 0, 1, nullptr});
  *agent_pointer = reinterpret_cast<void*>(reinterpret_cast<uint64_t>(host) | kLockedTag);
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_memory_lock(void* host, size_t size, hsa_agent_t* agents, int count,
                                             void** agent_pointer) {
  return hsa_amd_memory_lock_to_pool(host, size, agents, count, {0}, 0, agent_pointer);
}

SOFTGPU_API hsa_status_t hsa_amd_memory_unlock(void* host) {
  remove_allocation(reinterpret_cast<uintptr_t>(host_address(host)), MemoryKind::kLocked);
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_pointer_info(const void* pointer, hsa_amd_pointer_info_t* info, void* (*alloc)(size_t),
                                              uint32_t* num_agents, hsa_agent_t** accessible) {
  Runtime* rt = runtime();
  if (rt == nullptr) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  if (pointer == nullptr || info == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  const auto a = find_allocation(pointer);
  hsa_amd_pointer_info_t found{};
  found.size = std::min<uint32_t>(info->size, sizeof found);
  if (a) {
    found.type = a->kind == MemoryKind::kLocked     ? HSA_EXT_POINTER_TYPE_LOCKED
                 : a->kind == MemoryKind::kImported ? HSA_EXT_POINTER_TYPE_IPC
                                                    : HSA_EXT_POINTER_TYPE_HSA;
    found.hostBaseAddress = reinterpret_cast<void*>(a->base);
    found.agentBaseAddress = reinterpret_cast<void*>(a->kind == MemoryKind::kLocked ? a->base | kLockedTag : a->base);
    found.sizeInBytes = a->size;
    found.userData = a->user_data;
    found.agentOwner = a->owner->handle();
    found.global_flags = a->global_flags;
  }
  std::memcpy(info, &found, found.size);
  if (alloc != nullptr && num_agents != nullptr && accessible != nullptr) {
    *num_agents = a ? static_cast<uint32_t>(rt->agents.size()) : 0;
    *accessible = nullptr;
    if (a) {
      *accessible = static_cast<hsa_agent_t*>(alloc(sizeof(hsa_agent_t) * rt->agents.size()));
      for (uint32_t i = 0; *accessible != nullptr && i < *num_agents; ++i)
        (*accessible)[i] = rt->agents[i]->handle();
    }
  }
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_pointer_info_set_userdata(const void* pointer, void* data) {
  return set_user_data(pointer, data) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

SOFTGPU_API hsa_status_t hsa_memory_copy(void* to, const void* from, size_t size) {
  std::memmove(host_address(to), host_address(from), size);
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_memory_fill(void* memory, uint32_t value, size_t count) {
  std::fill_n(static_cast<uint32_t*>(host_address(memory)), count, value);
  return HSA_STATUS_SUCCESS;
}

// Nothing to do: the device can access all host memory.
SOFTGPU_API hsa_status_t hsa_memory_register(void*, size_t) {
  return HSA_STATUS_SUCCESS;
}
SOFTGPU_API hsa_status_t hsa_memory_deregister(void*, size_t) {
  return HSA_STATUS_SUCCESS;
}
SOFTGPU_API hsa_status_t hsa_amd_coherency_set_type(hsa_agent_t, hsa_amd_coherency_type_t) {
  return HSA_STATUS_SUCCESS;
}

}  // namespace softgpu
