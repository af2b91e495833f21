// The code object of `passer`: two kernels without parameters.
#include <hip/hip_runtime.h>

extern "C" __global__ void module_kernel_a() {}
extern "C" __global__ void module_kernel_b() {}
