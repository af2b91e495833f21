// A library whose one function launches a kernel, for `passer`. Built twice, PASSER_KERNEL being the kernel's name: the
// second can be loaded where the first was.
#include <hip/hip_runtime.h>

extern "C" __global__ void PASSER_KERNEL() {}

extern "C" __attribute__((visibility("default"))) int passer_launch(hipStream_t stream) {
  PASSER_KERNEL<<<1, 64, 0, stream>>>();
  return hipGetLastError();
}
