// Whether two functions get their arguments in the same registers and stack slots (x86-64 System V ABI).
#pragma once

#define __CUDA_API_VERSION_INTERNAL 1  // also what has been replaced
#include <cuda.h>
#include <cudaTypedefs.h>

#include <type_traits>

#include "client-shim/cuda/allocations.h"
#include "client-shim/cuda/types.h"

using namespace xschedd::shim;
using namespace xschedd::shim::cuda;

// Integers, enumerations and pointers each use one integer register or stack slot. The shim's type may be larger: the
// upper part is passed on unread. The only structure is CUmemLocation, which types.h explains.
template <typename Ours, typename Theirs>
constexpr bool kSameArgument = std::is_scalar_v<Ours> && sizeof(Ours) >= sizeof(Theirs) &&
                               ((std::is_scalar_v<Theirs> && !std::is_floating_point_v<Theirs>) ||
                                (std::is_same_v<Theirs, CUmemLocation> && sizeof(Theirs) == 8));

template <typename Ours, typename Theirs>
constexpr bool kTravelsAlike = false;
template <typename OurResult, typename... Ours, typename TheirResult, typename... Theirs>
constexpr bool kTravelsAlike<OurResult(Ours...), TheirResult(Theirs...)> = [] {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
    return sizeof(OurResult) == sizeof(TheirResult) && (kSameArgument<Ours, Theirs> && ...);
  } else {
    return false;
  }
}();

// The layouts that wrappers read, and the constants that they know.
static_assert(offsetof(CUlaunchConfig, hStream) == offsetof(LaunchConfig, stream));
static_assert(offsetof(CUlaunchConfig, gridDimX) == offsetof(LaunchConfig, grid));
static_assert(offsetof(CUlaunchConfig, blockDimX) == offsetof(LaunchConfig, block));
static_assert(offsetof(CUDA_LAUNCH_PARAMS, hStream) == offsetof(FunctionLaunchParams, stream));
static_assert(sizeof(CUDA_LAUNCH_PARAMS) == sizeof(FunctionLaunchParams));
static_assert(CUDA_SUCCESS == kSuccess && CUDA_ERROR_NOT_READY == kErrorNotReady);
static_assert(CUDA_ERROR_NOT_SUPPORTED == kErrorNotSupported);
static_assert(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD == kErrorWrongThread);
static_assert(CU_STREAM_CAPTURE_MODE_RELAXED == 2, "client-shim/core/interface.h");
static_assert(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM == kPerThreadFlag && CU_STREAM_NON_BLOCKING == 1);
static_assert(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT == 16, "client-shim/cuda/vendor.cc");

// What the rows of allocations read.
static_assert(CUDA_ERROR_OUT_OF_MEMORY == kErrorOutOfMemory);
static_assert(offsetof(CUDA_ARRAY_DESCRIPTOR, Format) == offsetof(ArrayShape<size_t>, format));
static_assert(offsetof(CUDA_ARRAY_DESCRIPTOR, NumChannels) == offsetof(ArrayShape<size_t>, channels));
static_assert(offsetof(CUDA_ARRAY3D_DESCRIPTOR, Depth) == offsetof(ArrayShape3D<size_t>, depth));
static_assert(offsetof(CUDA_ARRAY3D_DESCRIPTOR, Format) == offsetof(ArrayShape3D<size_t>, format));
static_assert(offsetof(CUDA_ARRAY3D_DESCRIPTOR, Flags) == offsetof(ArrayShape3D<size_t>, flags));
static_assert(sizeof(CUDA_ARRAY_DESCRIPTOR_v1) == sizeof(ArrayShape<unsigned>));
static_assert(sizeof(CUDA_ARRAY3D_DESCRIPTOR_v1) == sizeof(ArrayShape3D<unsigned>));
static_assert(CUDA_ARRAY3D_SPARSE == 0x40 && CUDA_ARRAY3D_DEFERRED_MAPPING == 0x80, "client-shim/cuda/allocations.h");
static_assert(offsetof(CUmemAllocationProp, location) == offsetof(AllocationProperties, location));
static_assert(CU_MEM_LOCATION_TYPE_DEVICE == 1, "client-shim/stub/allocation.h");
static_assert(offsetof(CUmemPoolProps, location) == offsetof(PoolProperties, location));
static_assert(sizeof(CUmemPoolProps) == sizeof(PoolProperties));
static_assert(offsetof(CUDA_MEM_ALLOC_NODE_PARAMS, bytesize) == offsetof(AllocNodeParams, bytes));
static_assert(offsetof(CUgraphNodeParams, alloc) == offsetof(GraphNodeParams, allocation));
static_assert(CU_GRAPH_NODE_TYPE_MEM_ALLOC == 10, "client-shim/stub/allocation.h");
static_assert(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT == 5 && CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT == 2,
              "client-shim/stub/pool_functions.h");
