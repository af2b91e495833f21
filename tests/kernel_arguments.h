// Reads the arguments of a dispatch on the software GPU, for host functions of tests' kernels. Thread rule: any thread.
#pragma once

#include <cstdint>
#include <cstring>

#include "tools/softgpu/softgpu.h"

namespace xschedd::test {

// `Arguments`: a struct of the kernel's parameters in their order, with natural alignment.
template <typename Arguments>
Arguments ReadArguments(const softgpu_dispatch* dispatch) {
  Arguments arguments;
  std::memcpy(&arguments, dispatch->kernarg, sizeof arguments);
  return arguments;
}

// The duration in ns of a kernel with a parameter `micros`.
template <typename Arguments>
std::uint64_t Cost(const softgpu_dispatch* dispatch) {
  return ReadArguments<Arguments>(dispatch).micros * 1000;
}

}  // namespace xschedd::test
