// CUDA's own part of what the rows of allocations say (stub/allocation.h). Thread rule: pure, but for g_made_pools.
#pragma once

#include "client-shim/cuda/types.h"
#include "client-shim/stub/allocation.h"
#include "client-shim/stub/made_pools.h"

namespace xschedd::shim::cuda {

extern MadePools g_made_pools;

// CUmemAllocationProp.
struct AllocationProperties {
  int type;
  int handle_types;
  Location location;
};
inline int DeviceOf(const AllocationProperties* with) {
  return with != nullptr ? DeviceAt(with->location) : kNoDevice;
}

// An array whose memory is mapped later has none of its own.
template <typename Number>
Wanted WithMemory(const ArrayShape3D<Number>* shape, uint64_t bytes) {
  constexpr unsigned kSparse = 0x40;           // CUDA_ARRAY3D_SPARSE
  constexpr unsigned kDeferredMapping = 0x80;  // CUDA_ARRAY3D_DEFERRED_MAPPING
  const bool is_without = shape != nullptr && (shape->flags & (kSparse | kDeferredMapping)) != 0;
  return is_without ? NotHere() : OnCurrent(bytes);
}

}  // namespace xschedd::shim::cuda
