// Memory of the software GPU, and its allocations by address range.
//
// Device memory is a part of one sparse memfd of the process, mapped shared: another process can map the same part
// (IPC). Parts are never handed out twice; freed ones are punched out of the file. Host memory is anonymous. Host and
// device use the same addresses. Memory that was locked (pinned) or imported is known here too. Thread rule: any
// thread.
#pragma once

#include <hsa/hsa_ext_amd.h>

#include <cstdint>
#include <optional>

#include "tools/softgpu/hsa/runtime.h"

namespace softgpu {

inline constexpr uint64_t kLockedTag = 0x5eull << 56;
inline bool is_tagged(uint64_t address) {
  return address >> 56 == kLockedTag >> 56;
}
template <typename T>
T* host_address(T* device_address) {
  const auto address = reinterpret_cast<uint64_t>(device_address);
  return is_tagged(address) ? reinterpret_cast<T*>(address ^ kLockedTag) : device_address;
}

enum class MemoryKind { kDevice, kHost, kLocked, kImported, kMapped };

struct Allocation {
  uintptr_t base;
  uint64_t size;
  MemoryKind kind;
  Agent* owner;
  uint32_t global_flags;
  int fd;           // device memory: the memfd it lies in; -1 else
  uint64_t offset;  // in that file
  uint32_t holds;   // locked: how many times
  void* user_data;
};

// Null: not enough memory.
void* allocate(const MemoryPool& pool, uint64_t size);
hsa_status_t release(void* base);
// Memory without an address, from the file that device memory lies in; released by release_backing. nullopt: not enough
// memory.
std::optional<Allocation> allocate_backing(const MemoryPool& pool, uint64_t size);
void release_backing(const Allocation& backing);

// The allocation that `address`, of host or device, lies in.
std::optional<Allocation> find_allocation(const void* address);
void add_allocation(const Allocation& allocation);
// Removes the allocation that starts at `base` and is of this kind; locked memory only when its last hold is gone.
std::optional<Allocation> remove_allocation(uintptr_t base, MemoryKind kind);
bool set_user_data(const void* base, void* data);

}  // namespace softgpu
