// Virtual memory management (ROCm 6 and later; the runtime's memory pools use it): address ranges that are reserved
// first, pieces of device memory without an address, and mappings of the one to the other. A reserved range that is not
// mapped faults, as on a GPU. Access rights are not modelled: mapped memory is accessible. Sharing pieces between
// processes is not implemented (unsupported.cc). Thread rule: any thread.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <sys/mman.h>

#include <map>
#include <mutex>
#include <optional>

#include "tools/softgpu/hsa/memory.h"
#include "tools/softgpu/hsa/runtime.h"

namespace softgpu {

namespace {

// As in the public headers of ROCr 6 and later.
struct AllocHandle {
  uint64_t handle;
};
enum MemoryType { kMemoryTypeNone, kMemoryTypePinned };
enum AccessPermission { kAccessNone, kAccessReadOnly, kAccessWriteOnly, kAccessReadWrite };

struct Piece {
  const MemoryPool* pool;
  Allocation memory;  // base is unused
  MemoryType type;
  uint32_t holds;  // the handle, and each mapping
};

struct Mapping {
  Piece* piece;
  uint64_t size;
};

struct State {
  std::mutex lock;
  std::map<uintptr_t, Mapping> mappings;
};

State& state() {
  static auto* s = new State;  // leaked, see runtime.h
  return *s;
}

Piece* piece_of(AllocHandle handle) {
  return reinterpret_cast<Piece*>(handle.handle);
}

void drop(Piece* piece) {
  if (--piece->holds > 0) return;
  release_backing(piece->memory);
  delete piece;
}

// hsa_amd_vmem_address_reserve*: the range will hold managed host memory, not mappings of device memory.
constexpr uint64_t kReserveForHost = 1;

constexpr int kReserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

}  // namespace

SOFTGPU_API hsa_status_t hsa_amd_vmem_address_reserve_align(void** address, size_t size, uint64_t hint,
                                                            uint64_t alignment, uint64_t flags) {
  if (address == nullptr || size == 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  // To get an aligned range from mmap, maps more than requested and unmaps the ends.
  const uint64_t slack = alignment > 4096 ? alignment : 0;
  const int access = (flags & kReserveForHost) != 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
  void* p = mmap(reinterpret_cast<void*>(hint), size + slack, access, kReserved, -1, 0);
  if (p == MAP_FAILED) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  const auto begin = reinterpret_cast<uintptr_t>(p);
  const uintptr_t aligned = slack > 0 ? (begin + slack - 1) / slack * slack : begin;
  if (aligned > begin) munmap(p, aligned - begin);
  const uintptr_t end = aligned + size;
  if (begin + size + slack > end) munmap(reinterpret_cast<void*>(end), begin + size + slack - end);
  *address = reinterpret_cast<void*>(aligned);
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_vmem_address_reserve(void** address, size_t size, uint64_t hint, uint64_t flags) {
  return hsa_amd_vmem_address_reserve_align(address, size, hint, 0, flags);
}

SOFTGPU_API hsa_status_t hsa_amd_vmem_address_free(void* address, size_t size) {
  return munmap(address, size) == 0 ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

SOFTGPU_API hsa_status_t hsa_amd_vmem_handle_create(hsa_amd_memory_pool_t pool_handle, size_t size, MemoryType type,
                                                    uint64_t, AllocHandle* handle) {
  Runtime* rt = runtime();
  const MemoryPool* pool = rt != nullptr ? rt->pool(pool_handle) : nullptr;
  if (pool == nullptr || handle == nullptr || size == 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  const auto memory = allocate_backing(*pool, size);
  if (!memory) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  handle->handle = reinterpret_cast<uint64_t>(new Piece{pool, *memory, type, 1});
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_vmem_handle_release(AllocHandle handle) {
  if (handle.handle == 0) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
  const std::lock_guard guard(state().lock);
  drop(piece_of(handle));
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_vmem_map(void* address, size_t size, size_t offset, AllocHandle handle, uint64_t) {
  Piece* piece = piece_of(handle);
  if (piece == nullptr || offset > piece->memory.size || size > piece->memory.size - offset) {
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
  const auto at = static_cast<off_t>(piece->memory.offset + offset);
  if (mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, piece->memory.fd, at) ==
      MAP_FAILED) {
    return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  }
  madvise(address, size, MADV_DONTFORK);
  Allocation mapped = piece->memory;
  mapped.base = reinterpret_cast<uintptr_t>(address);
  mapped.size = size;
  mapped.offset += offset;
  mapped.kind = MemoryKind::kMapped;
  add_allocation(mapped);
  const std::lock_guard guard(state().lock);
  ++piece->holds;
  state().mappings[mapped.base] = {piece, size};
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_vmem_unmap(void* address, size_t size) {
  const auto key = reinterpret_cast<uintptr_t>(address);
  const std::lock_guard guard(state().lock);
  const auto it = state().mappings.find(key);
  if (it == state().mappings.end() || it->second.size != size) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
  // Reserved again: no other mapping may get the range until it is freed.
  if (mmap(address, size, PROT_NONE, kReserved | MAP_FIXED, -1, 0) == MAP_FAILED)
    return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  remove_allocation(key, MemoryKind::kMapped);
  drop(it->second.piece);
  state().mappings.erase(it);
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_vmem_set_access(void*, size_t, const void*, size_t) {
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_vmem_get_access(void* address, AccessPermission* permission, hsa_agent_t) {
  if (permission == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  *permission = find_allocation(address) ? kAccessReadWrite : kAccessNone;
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_vmem_retain_alloc_handle(AllocHandle* handle, void* address) {
  if (handle == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  const std::lock_guard guard(state().lock);
  const auto it = state().mappings.find(reinterpret_cast<uintptr_t>(address));
  if (it == state().mappings.end()) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
  ++it->second.piece->holds;
  handle->handle = reinterpret_cast<uint64_t>(it->second.piece);
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_vmem_get_alloc_properties_from_handle(AllocHandle handle, hsa_amd_memory_pool_t* pool,
                                                                       MemoryType* type) {
  const Piece* piece = piece_of(handle);
  if (piece == nullptr || pool == nullptr || type == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  pool->handle = reinterpret_cast<uint64_t>(piece->pool);
  *type = piece->type;
  return HSA_STATUS_SUCCESS;
}

}  // namespace softgpu
