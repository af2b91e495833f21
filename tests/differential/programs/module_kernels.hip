// The code objects that `modules` loads (see there). WIDEST: the most threads that scale_add may be launched with. NUMBER:
// what tells one object's variable from the other's.
#include <hip/hip_runtime.h>

#include <cstdint>

extern "C" __global__ __launch_bounds__(WIDEST) void scale_add(std::uint32_t* y, const std::uint32_t* x, std::uint32_t step,
                                                               std::uint32_t count, std::uint64_t micros);

#include "tests/e2e/programs/kernels.h"

extern "C" __device__ e2e::Value module_numbers[4] = {NUMBER, 2, 3, 4};
