// Kernels of the differential programs, in addition to tests/e2e/programs/kernels.h (scale_add). host_kernels.cc has
// their functions for the software GPU.
#pragma once

#include "tests/e2e/programs/kernels.h"

namespace differential {

using e2e::Value;

// The order in which kernels ran, whatever stream each was on: an entry for each `append`.
struct Order {
  static constexpr std::uint32_t kMaxTags = 1020;
  std::uint32_t count;
  std::uint32_t tags[kMaxTags];  // entries beyond the last are counted and not kept
};

}  // namespace differential

#ifdef __HIPCC__
// Runs for `micros` and appends `tag`. With appends on several streams the result shows the order in which they ran;
// without an order between the streams that is random, so a program must order them.
extern "C" __global__ void append(differential::Order* order, std::uint32_t tag, std::uint64_t micros) {
  (void)micros;
  const std::uint32_t at = atomicAdd(&order->count, 1u);
  if (at < differential::Order::kMaxTags) order->tags[at] = tag;
}

// scale_add once more, for graphs of programs whose other threads launch meanwhile: libamdhip64 5.2.3 sets the
// arguments of a graph's kernel without the lock that a plain launch takes, so that of two threads that do both with
// the same kernel one gets the other's arguments (5 of 10 runs of two threads that each made
// 60 graphs and launched between them, without the shim).
extern "C" __global__ void scale_add_in_graph(differential::Value* y, const differential::Value* x,
                                              differential::Value step, std::uint32_t count, std::uint64_t micros) {
  (void)micros;
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] = e2e::Step(y[i], x[i], step);
}
#endif
