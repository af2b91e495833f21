// Calls that only order (host functions, values that a stream writes and waits for) as the first calls after a pause,
// while the process is held. They submit no work, so each returns and takes effect although no kernel may be launched.
#include <atomic>

#include "values.h"

using differential::Lane;

namespace {

constexpr useconds_t kQuietUs = 2000;  // longer than the shim waits before it looks after a stream by itself

void WaitUntil(const std::atomic<std::uint64_t>& word, std::uint64_t value) {
  while (word.load() < value)
    usleep(100);
}

void CallBack(hipStream_t, hipError_t, void* data) {
  static_cast<std::atomic<std::uint64_t>*>(data)->fetch_add(1);
}

}  // namespace

int main(int argc, char** argv) {
  differential::Run run(argc, argv);
  Lane& lane = run.main;
  for (int device = 0; device < run.devices; ++device) {
    CALL(lane, hipSetDevice(device));
    hipStream_t stream;
    void* memory = nullptr;
    std::atomic<std::uint64_t> called{0};
    differential::Values values;
    CALL(lane, hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    CALL(lane, hipExtMallocWithFlags(&memory, sizeof(std::uint64_t), hipMallocSignalMemory));
    auto& word = *new (memory) std::atomic<std::uint64_t>(0);
    values.Make(lane);
    for (unsigned step = 1; step <= 2 * run.rounds; ++step) {
      LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(values.device, values.device, step, differential::kCount, 300));
      values.Step(values, step);
      CALL(lane, hipStreamSynchronize(stream));
      usleep(kQuietUs);
      run.Ask("hold");
      CALL(lane, hipStreamAddCallback(stream, CallBack, &called, 0));
      WaitUntil(called, step);
      CALL(lane, hipStreamWriteValue64(stream, memory, step, 0));
      WaitUntil(word, step);
      CALL(lane, hipStreamWaitValue64(stream, memory, step, hipStreamWaitValueGte, ~std::uint64_t{0}));
      CALL(lane, hipStreamSynchronize(stream));
      run.Ask("release");
    }
    values.Check(lane, "behind all of it");
    values.Free(lane);
    CALL(lane, hipFree(memory));
    CALL(lane, hipStreamDestroy(stream));
  }
  return run.End();
}
