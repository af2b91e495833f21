// Whether two functions get their arguments in the same registers and stack slots (x86-64 System V ABI). Included by
// the source that signatures.py writes, after the HIP headers of one runtime. Thread rule: compile time only.
#pragma once

#include <type_traits>

#include "client-shim/hip/allocations.h"
#include "client-shim/hip/types.h"

using namespace xschedd::shim;
using namespace xschedd::shim::hip;

// Structures by value: only these pairs. All members are integers or pointers; types.h says how each is passed.
template <typename Ours, typename Theirs>
constexpr bool kSameStructure = false;
template <>
inline constexpr bool kSameStructure<Dim3, dim3> = sizeof(dim3) == 12 && sizeof(Dim3) == 16;
template <>
inline constexpr bool kSameStructure<PitchedPtr, hipPitchedPtr> = sizeof(PitchedPtr) == sizeof(hipPitchedPtr);
template <>
inline constexpr bool kSameStructure<Extent, hipExtent> = sizeof(Extent) == sizeof(hipExtent);
template <>
inline constexpr bool kSameStructure<MemLocation, hipMemLocation> = sizeof(MemLocation) == sizeof(hipMemLocation);

// Integers, enumerations, pointers and references go into one integer register each, of their size; 8- and 16-bit ones
// may be declared as 32-bit ones. A pointer matches only a pointer, so that a size is not taken for an address.
template <typename Ours, typename Theirs>
constexpr bool kSameArgument = [] {
  constexpr bool is_pointer = std::is_pointer_v<Theirs> || std::is_reference_v<Theirs>;
  if constexpr (std::is_pointer_v<Ours> || is_pointer) {
    return std::is_pointer_v<Ours> && is_pointer;
  } else if constexpr (std::is_scalar_v<Ours> && std::is_scalar_v<Theirs>) {
    return !std::is_floating_point_v<Ours> && !std::is_floating_point_v<Theirs> &&
           (sizeof(Ours) == sizeof(Theirs) || (sizeof(Ours) == 4 && sizeof(Theirs) < 4));
  } else {
    return kSameStructure<Ours, Theirs>;
  }
}();

template <typename Ours, typename Theirs>
constexpr bool kTravelsAlike = false;
template <typename OurResult, typename... Ours, typename TheirResult, typename... Theirs>
constexpr bool kTravelsAlike<OurResult(Ours...), TheirResult(Theirs...)> = [] {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
    return std::is_same_v<OurResult, Result> && sizeof(OurResult) == sizeof(TheirResult) &&
           (kSameArgument<Ours, Theirs> && ...);
  } else {
    return false;
  }
}();

static_assert(hipMemcpyDeviceToHost == kDeviceToHost, "hipMemcpyDeviceToHost");
static_assert(hipErrorOutOfMemory == kErrorOutOfMemory, "hipErrorOutOfMemory");
static_assert(hipErrorNotReady == kErrorNotReady, "hipErrorNotReady");
static_assert(hipErrorNotSupported == kErrorNotSupported, "hipErrorNotSupported");
static_assert(hipErrorStreamCaptureWrongThread == kErrorWrongThread, "hipErrorStreamCaptureWrongThread");
static_assert(hipStreamCaptureModeRelaxed == 2 && hipStreamNonBlocking == 1, "flags of streams and captures");
static_assert(hipDeviceAttributeMultiprocessorCount == 63, "hipDeviceAttributeMultiprocessorCount");
static_assert(offsetof(hipDeviceProp_t, totalGlobalMem) == (HIP_VERSION_MAJOR < 6 ? kTotalAtFirst : kTotalFrom6),
              "hipDeviceProp_t::totalGlobalMem");
