// Host functions for the kernels of kernels.h: what the software GPU runs in place of GPU code.
// Thread rule: called by the software GPU's packet processors, several at a time; no state of its own.
#include <atomic>

#include "kernels.h"
#include "tests/kernel_arguments.h"

namespace {

using xschedd::test::Cost;
using xschedd::test::ReadArguments;

struct Append {  // in kernarg order, natural alignment
  differential::Order* order;
  std::uint32_t tag;
  std::uint64_t micros;
};

void RunAppend(const softgpu_dispatch* dispatch) {
  const auto arguments = ReadArguments<Append>(dispatch);
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
  const auto arguments = ReadArguments<ScaleAdd>(dispatch);
  for (std::uint32_t i = 0; i < arguments.count; ++i)
    arguments.y[i] = e2e::Step(arguments.y[i], arguments.x[i], arguments.step);
}

const softgpu_kernel kKernels[] = {{"append", RunAppend, Cost<Append>},
                                   {"scale_add_in_graph", RunScaleAdd, Cost<ScaleAdd>}};
const softgpu_kernel_table kTable = {SOFTGPU_ABI_VERSION, 2, kKernels};

}  // namespace

const softgpu_kernel_table* softgpu_kernels(uint32_t abi_version) {
  return abi_version == SOFTGPU_ABI_VERSION ? &kTable : nullptr;
}
