// Threads that issue random work on streams of their own, on two devices, with events across: every buffer must end
// with the sum of the operations issued on it. The seed is fixed.
#include <random>
#include <thread>

#include "device_test.h"

namespace {

constexpr int kThreads = 4;
constexpr int kStreams = 3;
constexpr int kOperations = 250;
constexpr int kCount = 128;

struct Lane {
  hipStream_t stream;
  hipEvent_t event;
  int* values;
  int* spare;
  int expected = 0;
};

void step(Lane& lane, Lane& other, std::mt19937& random) {
  const int amount = static_cast<int>(random() % 100);
  switch (random() % 6) {
    case 0:
    case 1:
      add_to<<<kCount / kBlock, kBlock, 0, lane.stream>>>(lane.values, kCount, amount);
      lane.expected += amount;
      break;
    case 2:
      HIP(hipMemcpyAsync(lane.spare, lane.values, kCount * sizeof(int), hipMemcpyDeviceToDevice, lane.stream));
      HIP(hipMemcpyAsync(lane.values, lane.spare, kCount * sizeof(int), hipMemcpyDefault, lane.stream));
      break;
    case 3:
      HIP(hipMemsetD32Async(reinterpret_cast<hipDeviceptr_t>(lane.values), amount, kCount, lane.stream));
      lane.expected = amount;
      break;
    case 4:
      HIP(hipEventRecord(other.event, other.stream));
      HIP(hipStreamWaitEvent(lane.stream, other.event, 0));
      break;
    case 5:
      if (amount < 10) HIP(hipStreamSynchronize(lane.stream));
      break;
  }
}

void work(int thread) {
  HIP(hipSetDevice(thread % 2));
  std::mt19937 random(static_cast<unsigned>(thread));
  Lane lanes[kStreams];
  for (Lane& lane : lanes) {
    HIP(hipStreamCreateWithFlags(&lane.stream, hipStreamNonBlocking));
    HIP(hipEventCreateWithFlags(&lane.event, hipEventDisableTiming));
    HIP(hipMalloc(&lane.values, kCount * sizeof(int)));
    HIP(hipMalloc(&lane.spare, kCount * sizeof(int)));
    HIP(hipMemsetAsync(lane.values, 0, kCount * sizeof(int), lane.stream));
  }
  for (int i = 0; i < kOperations; ++i)
    step(lanes[random() % kStreams], lanes[random() % kStreams], random);
  for (Lane& lane : lanes) {
    HIP(hipStreamSynchronize(lane.stream));
    REQUIRE(all_equal(read_back(lane.values, kCount), lane.expected));
    HIP(hipFree(lane.values));
    HIP(hipFree(lane.spare));
    HIP(hipStreamDestroy(lane.stream));
  }
}

}  // namespace

int main() {
  setenv("SOFTGPU_DEVICES", "2", 1);
  setenv("SOFTGPU_CLOCK_SCALE", "0.05", 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back(work, i);
  for (std::thread& t : threads)
    t.join();
}
