// Cooperative launches, on one device and on several at a time, and the other multi-device launch: behind and before
// plain kernels, with lists that are wrong.
#include <memory>

#include "values.h"

using differential::Lane;
using differential::Value;

namespace {

struct Arguments {
  Value *y, *x;
  Value step;
  std::uint32_t count = differential::kCount;
  std::uint64_t micros;
  void* list[5] = {&y, &x, &step, &count, &micros};

  Arguments(Value* values, Value step_, std::uint64_t micros_) : y(values), x(values), step(step_), micros(micros_) {}
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
};

const auto* const kKernel = reinterpret_cast<const void*>(scale_add);

void OnOne(Lane& lane, differential::Values& values) {
  hipStream_t stream;
  CALL(lane, hipStreamCreate(&stream));
  for (unsigned step = 0; step < 12; ++step) {
    Arguments arguments(values.device, step, 200 + lane.Random(500));
    if (lane.Random(2)) {
      CALL(lane, hipLaunchCooperativeKernel(kKernel, dim3(2), dim3(128), arguments.list, 0, stream));
    } else {
      LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(values.device, values.device, step, differential::kCount,
                                                    arguments.micros));
    }
    values.Step(values, step);
    if (lane.Random(5) == 0) CALL(lane, hipStreamSynchronize(stream));
  }
  CALL(lane, hipStreamSynchronize(stream));
  Arguments arguments(values.device, 0, 100);
  CALL(lane, hipLaunchCooperativeKernel(kKernel, dim3(1 << 24), dim3(128), arguments.list, 0, stream));  // does not fit
  CALL(lane, hipLaunchCooperativeKernel(static_cast<const void*>(nullptr), dim3(2), dim3(128), arguments.list, 0, stream));
  CALL(lane, hipLaunchCooperativeKernel(kKernel, dim3(2), dim3(4096), arguments.list, 0, stream));
  CALL(lane, hipLaunchCooperativeKernel(kKernel, dim3(0), dim3(128), arguments.list, 0, stream));
  CALL(lane, hipStreamSynchronize(stream));
  values.Check(lane, "cooperative");
  CALL(lane, hipStreamDestroy(stream));
}

void OnSeveral(Lane& lane, int devices) {
  constexpr int kTooMany = 7;
  std::vector<differential::Values> values(devices);
  std::vector<hipStream_t> streams(devices);
  for (int device = 0; device < devices; ++device) {
    CALL(lane, hipSetDevice(device));
    CALL(lane, hipStreamCreate(&streams[device]));
    values[device].Make(lane);
  }
  for (unsigned step = 0; step < 8; ++step) {
    std::vector<std::unique_ptr<Arguments>> arguments;
    std::vector<hipLaunchParams> list(devices + kTooMany);  // HIP 5.7 reads as many as it is told to
    for (int device = 0; device < devices; ++device) {
      arguments.push_back(std::make_unique<Arguments>(values[device].device, step + device, 300 + lane.Random(300)));
      list[device].func = const_cast<void*>(kKernel);
      list[device].gridDim = dim3(2);
      list[device].blockDim = dim3(128);
      list[device].args = arguments.back()->list;
      list[device].sharedMem = 0;
      list[device].stream = streams[device];
      values[device].Step(values[device], step + device);
    }
    if (lane.Random(2)) {
      CALL(lane, hipLaunchCooperativeKernelMultiDevice(list.data(), devices, lane.Random(4)));
    } else {
      CALL(lane, hipExtLaunchMultiKernelMultiDevice(list.data(), devices, lane.Random(4)));
    }
    if (step % 3 == 0) {
      for (const hipStream_t stream : streams)
        CALL(lane, hipStreamSynchronize(stream));
    }
    if (step == 7) {
      CALL(lane, hipLaunchCooperativeKernelMultiDevice(list.data(), 0, 0));
      CALL(lane, hipLaunchCooperativeKernelMultiDevice(nullptr, devices, 0));
      CALL(lane, hipExtLaunchMultiKernelMultiDevice(list.data(), devices + kTooMany, 0));
      list[0].stream = nullptr;  // not allowed here
      CALL(lane, hipLaunchCooperativeKernelMultiDevice(list.data(), devices, 0));
    }
  }
  for (int device = 0; device < devices; ++device) {
    CALL(lane, hipSetDevice(device));
    CALL(lane, hipStreamSynchronize(streams[device]));
    values[device].Check(lane, "on several");
    CALL(lane, hipStreamDestroy(streams[device]));
    values[device].Free(lane);
  }
}

}  // namespace

int main(int argc, char** argv) {
  differential::Run run(argc, argv);
  Lane& lane = run.main;
  for (unsigned round = 0; round < run.rounds; ++round) {
    for (int device = 0; device < run.devices; ++device) {
      differential::Values values;
      CALL(lane, hipSetDevice(device));
      values.Make(lane);
      OnOne(lane, values);
      values.Free(lane);
    }
    OnSeveral(lane, run.devices);
  }
  return run.End();
}
