// Whether two functions get their arguments in the same registers and stack slots (x86-64 System V ABI).
#pragma once

#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#include <type_traits>

#include "client-shim/hip/types.h"

using namespace xschedd::shim;

// Integers, enumerations and pointers go into one integer register each. 8- and 16-bit ones fill it up, so that they
// may be written as 32-bit ones. Structures: of one size, but for dim3, which types.h explains.
template <typename Ours, typename Theirs>
constexpr bool kSameArgument = (std::is_scalar_v<Ours> && std::is_scalar_v<Theirs> &&
                                !std::is_floating_point_v<Theirs> &&
                                (sizeof(Ours) == sizeof(Theirs) || (sizeof(Ours) == 4 && sizeof(Theirs) < 4))) ||
                               (std::is_class_v<Ours> && std::is_class_v<Theirs> && sizeof(Ours) == sizeof(Theirs)) ||
                               (std::is_same_v<Ours, Dim3> && std::is_same_v<Theirs, dim3> && sizeof(dim3) == 12);

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

// The layouts that wrappers look into.
static_assert(offsetof(hipLaunchParams, stream) == offsetof(LaunchParams, stream));
static_assert(sizeof(hipLaunchParams) == sizeof(LaunchParams));
static_assert(sizeof(hipPitchedPtr) == sizeof(PitchedPtr) && sizeof(hipExtent) == sizeof(Extent));
static_assert(hipDeviceAttributeMultiprocessorCount == 63, "client-shim/hip/vendor.cc");
static_assert(hipMemcpyDeviceToHost == kDeviceToHost && hipErrorNotReady == kHipErrorNotReady);
static_assert(hipStreamCaptureModeRelaxed == 2 && hipStreamNonBlocking == 1);
