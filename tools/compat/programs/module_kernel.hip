// The kernel of hip_module, compiled to a separate code object.
#include <hip/hip_runtime.h>

extern "C" __global__ void add_one(float* data, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) data[i] += 1.0F;
}
