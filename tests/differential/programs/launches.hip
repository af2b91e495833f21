// The simplest program of the suite: kernels on the default stream and on one other, synchronised now and then, with
// copies and fills between them.
#include <vector>

#include "tests/differential/transcript.h"

using e2e::Value;

int main(int argc, char** argv) {
  differential::Run run(argc, argv);
  differential::Lane& lane = run.main;
  constexpr std::uint32_t kCount = 256;
  constexpr std::size_t kBytes = kCount * sizeof(Value);

  for (int device = 0; device < run.devices; ++device) {
    CALL(lane, hipSetDevice(device));
    Value *x, *y;
    hipStream_t stream;
    CALL(lane, hipMalloc(&x, kBytes));
    CALL(lane, hipMalloc(&y, kBytes));
    CALL(lane, hipStreamCreate(&stream));
    std::vector<Value> host(kCount), model_x(kCount, 1), model_y(kCount, 0x01010101);
    CALL(lane, hipMemcpy(x, model_x.data(), kBytes, hipMemcpyHostToDevice));
    CALL(lane, hipMemset(y, 1, kBytes));
    for (unsigned round = 0; round < run.rounds; ++round) {
      for (unsigned step = 0; step < 20; ++step) {
        const hipStream_t on = lane.Random(2) ? stream : nullptr;
        LAUNCH(lane, scale_add<<<2, 128, 0, on>>>(y, x, step, kCount, 100 + lane.Random(900)));
        for (std::uint32_t i = 0; i < kCount; ++i)
          model_y[i] = e2e::Step(model_y[i], model_x[i], step);
        switch (lane.Random(8)) {
          case 0:
            CALL(lane, hipMemcpyAsync(x, y, kBytes, hipMemcpyDeviceToDevice, on));
            model_x = model_y;
            break;
          case 1:
            CALL(lane, hipMemsetAsync(x, static_cast<int>(step), kBytes, on));
            model_x.assign(kCount, step * 0x01010101);
            break;
          case 2:
            CALL(lane, hipStreamSynchronize(on));
            break;
          default:
            break;
        }
      }
      CALL(lane, hipMemcpy(host.data(), y, kBytes, hipMemcpyDeviceToHost));
      lane.Data("y", host.data(), kBytes);
      CHECK(lane, host == model_y);
    }
    CALL(lane, hipStreamDestroy(stream));
    CALL(lane, hipFree(x));
    CALL(lane, hipFree(y));
  }
  return run.End();
}
