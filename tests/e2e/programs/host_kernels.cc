// Host functions for the end-to-end programs' kernels: what the software GPU runs in place of GPU code.
// Thread rule: called by the software GPU's packet processors, several at a time; no state.
#include <chrono>
#include <thread>

#include "kernels.h"
#include "tests/kernel_arguments.h"

namespace {

using xschedd::test::Cost;
using xschedd::test::ReadArguments;

struct ScaleAddArguments {  // in kernarg order, natural alignment
  e2e::Value* y;
  const e2e::Value* x;
  e2e::Value step;
  std::uint32_t count;
  std::uint64_t micros;
};

void RunScaleAdd(const softgpu_dispatch* dispatch) {
  const auto arguments = ReadArguments<ScaleAddArguments>(dispatch);
  for (std::uint32_t i = 0; i < arguments.count; ++i) {
    arguments.y[i] = e2e::Step(arguments.y[i], arguments.x[i], arguments.step);
  }
}

struct MeetArguments {
  e2e::Meeting* meeting;
  std::uint32_t rank;
  std::uint32_t round;
  std::uint64_t micros;
};

// Runs until the other rank's kernel of this round is running, too. A partner that is held forever must make the test
// fail, not hang.
void RunMeet(const softgpu_dispatch* dispatch) {
  constexpr auto kPatience = std::chrono::seconds(20);
  const auto arguments = ReadArguments<MeetArguments>(dispatch);
  e2e::Meeting& meeting = *arguments.meeting;
  meeting.arrived[arguments.rank] = arguments.round;
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  while (meeting.arrived[1 - arguments.rank] < arguments.round) {
    if (std::chrono::steady_clock::now() > limit) {
      ++meeting.missed;
      return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

const softgpu_kernel kKernels[] = {{"scale_add", RunScaleAdd, Cost<ScaleAddArguments>},
                                   {"meet", RunMeet, Cost<MeetArguments>}};
const softgpu_kernel_table kTable = {SOFTGPU_ABI_VERSION, 2, kKernels};

}  // namespace

const softgpu_kernel_table* softgpu_kernels(uint32_t abi_version) {
  return abi_version == SOFTGPU_ABI_VERSION ? &kTable : nullptr;
}
