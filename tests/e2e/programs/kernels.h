// The device code of the end-to-end programs, and its arithmetic for the host to check.
//
// The steps do not commute (y = 2y + x + step, modulo 2^32), so a launch that is lost, doubled or run out of order
// changes the result. On the software GPU the host function in host_kernels.cc does the same, and `micros` is its
// duration.
#pragma once

#include <cstdint>

#include "meeting.h"

namespace e2e {

using Value = std::uint32_t;  // wraps around: exact on any device

#ifdef __HIPCC__
#define E2E_BOTH __host__ __device__
#else
#define E2E_BOTH
#endif

E2E_BOTH inline Value Step(Value y, Value x, Value step) {
  return 2 * y + x + step;
}

}  // namespace e2e

#ifdef __HIPCC__
#include <hip/hip_runtime.h>

extern "C" __global__ void scale_add(e2e::Value* y, const e2e::Value* x, e2e::Value step, std::uint32_t count,
                                     std::uint64_t micros) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] = e2e::Step(y[i], x[i], step);
#ifdef __HIP_DEVICE_COMPILE__
  // On a real GPU the wave keeps its place for `micros`: the clock of s_memrealtime runs at 100 MHz on CDNA.
  const long long end = wall_clock64() + static_cast<long long>(micros) * 100;
  while (wall_clock64() < end) {
  }
#else
  (void)micros;
#endif
}

// Implemented in host_kernels.cc: only on the software GPU can two GPUs wait for each other.
extern "C" __global__ void meet(e2e::Meeting* meeting, std::uint32_t rank, std::uint32_t round, std::uint64_t micros) {
  (void)meeting, (void)rank, (void)round, (void)micros;
}
#endif
