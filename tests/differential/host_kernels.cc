// Host functions for the kernels of kernels.h: what the software GPU runs in place of GPU code.
// Thread rule: called by the software GPU's packet processors, several at a time; no state of its own.
#include <atomic>
#include <cstring>

#include "kernels.h"
#include "tools/softgpu/softgpu.h"

namespace {

template <typename Arguments>
Arguments Read(const softgpu_dispatch* dispatch) {
  Arguments arguments;
  std::memcpy(&arguments, dispatch->kernarg, sizeof arguments);
  return arguments;
}

struct Append {  // in kernarg order, natural alignment
  differential::Order* order;
  std::uint32_t tag;
  std::uint64_t micros;
};

void RunAppend(const softgpu_dispatch* dispatch) {
  const auto arguments = Read<Append>(dispatch);
  const std::uint32_t at = std::atomic_ref(arguments.order->count).fetch_add(1);
  if (at < differential::Order::kMaxTags) arguments.order->tags[at] = arguments.tag;
}

struct ScaleAdd {
  differential::Value* y;
  const differential::Value* x;
  differential::Value step;
  std::uint32_t count;
  std::uint64_t micros;
};

void RunScaleAdd(const softgpu_dispatch* dispatch) {
  const auto arguments = Read<ScaleAdd>(dispatch);
  for (std::uint32_t i = 0; i < arguments.count; ++i)
    arguments.y[i] = e2e::Step(arguments.y[i], arguments.x[i], arguments.step);
}

template <typename Arguments>
std::uint64_t Cost(const softgpu_dispatch* dispatch) {
  return Read<Arguments>(dispatch).micros * 1000;
}

const softgpu_kernel kKernels[] = {{"append", RunAppend, Cost<Append>},
                                   {"scale_add_in_graph", RunScaleAdd, Cost<ScaleAdd>}};
const softgpu_kernel_table kTable = {SOFTGPU_ABI_VERSION, 2, kKernels};

}  // namespace

const softgpu_kernel_table* softgpu_kernels(uint32_t abi_version) {
  return abi_version == SOFTGPU_ABI_VERSION ? &kTable : nullptr;
}
