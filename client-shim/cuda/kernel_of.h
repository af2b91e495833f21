// Which kernel a call launches, for passthrough rules by kernel name (core/passthrough.h). Overloads find it in the
// arguments of each entry point by their types, as in launch_key.h. Graphs, copies and fills are no kernels.
// Thread rule: pure.
#pragma once

#include "client-shim/core/interface.h"
#include "client-shim/cuda/types.h"

namespace xschedd::shim::cuda {

template <typename... Arguments>
KernelRef KernelOf(uint32_t, Arguments...) {
  return {};
}

template <typename... Rest>
KernelRef KernelOf(uint32_t, Handle function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Rest...) {
  return {KernelKind::kModuleFunction, function};
}
inline KernelRef KernelOf(uint32_t, const LaunchConfig*, Handle function, void*, void*) {
  return {KernelKind::kModuleFunction, function};
}
inline KernelRef KernelOf(uint32_t, Handle function, int, int, Stream = nullptr) {
  return {KernelKind::kModuleFunction, function};
}
inline KernelRef KernelOf(uint32_t, Handle function) {
  return {KernelKind::kModuleFunction, function};
}

// An item of a list.
inline KernelRef KernelOf(const FunctionLaunchParams& item) {
  return {KernelKind::kModuleFunction, item.function};
}

}  // namespace xschedd::shim::cuda
