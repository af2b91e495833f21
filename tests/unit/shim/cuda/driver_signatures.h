// Whether two functions get their arguments in the same registers and stack slots (x86-64 System V ABI).
#pragma once

#define __CUDA_API_VERSION_INTERNAL 1  // also what has been replaced
#include <cuda.h>
#include <cudaTypedefs.h>

#include <type_traits>

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
