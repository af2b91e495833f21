// A kernel library as SOFTGPU_KERNELS names it, for plugin.hip.
#include <cstring>

#include "tools/softgpu/softgpu.h"

namespace {

struct ScaleArguments {  // scale_by(float* values, int count, float factor)
  float* values;
  int count;
  float factor;
};

void scale_by(const softgpu_dispatch* dispatch) {
  ScaleArguments a;
  std::memcpy(&a, dispatch->kernarg, sizeof a);
  for (int i = 0; i < a.count; ++i)
    a.values[i] *= a.factor;
}

constexpr softgpu_kernel kKernels[] = {{"_Z8scale_byPfif", scale_by, nullptr}};
constexpr softgpu_kernel_table kTable = {SOFTGPU_ABI_VERSION, 1, kKernels};

}  // namespace

extern "C" const softgpu_kernel_table* softgpu_kernels(uint32_t abi_version) {
  return abi_version == SOFTGPU_ABI_VERSION ? &kTable : nullptr;
}
