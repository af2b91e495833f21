// Which kernel a call launches, for passthrough rules by kernel name (core/passthrough.h). Overloads find it in the
// arguments of each entry point by their types, as in launch_key.h. Graphs, copies and fills are no kernels.
// Thread rule: pure.
#pragma once

#include "client-shim/core/interface.h"
#include "client-shim/hip/types.h"

namespace xschedd::shim::hip {

template <typename... Arguments>
KernelRef KernelOf(uint32_t, Arguments...) {
  return {};
}

// The compiler's launch syntax.
template <typename... Rest>
KernelRef KernelOf(uint32_t, const void* function, Dim3, Dim3, Rest...) {
  return {KernelKind::kHostFunction, function};
}
inline KernelRef KernelOf(uint32_t, size_t function, const void*, const void*, unsigned, Stream, void**) {
  return {KernelKind::kHostFunction, reinterpret_cast<const void*>(function)};
}
inline KernelRef KernelOf(uint32_t, const LaunchConfig*, const void* function, void**) {
  return {KernelKind::kHostFunction, function};
}
inline KernelRef KernelOf(uint32_t, const void* function) {  // hipLaunchByPtr
  return {KernelKind::kHostFunction, function};
}

// Modules.
template <typename... Rest>
KernelRef KernelOf(uint32_t, Handle function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Rest...) {
  return {KernelKind::kModuleFunction, function};
}
inline KernelRef KernelOf(uint32_t, const LaunchConfig*, Handle function, void**, void**) {
  return {KernelKind::kModuleFunction, function};
}

// An item of a list.
inline KernelRef KernelOf(const LaunchParams& item) {
  return {KernelKind::kHostFunction, item.function};
}
inline KernelRef KernelOf(const FunctionLaunchParams& item) {
  return {KernelKind::kModuleFunction, item.function};
}

}  // namespace xschedd::shim::hip
