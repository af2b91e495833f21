// Streams of every kind, events and their time stamps, order across streams, callbacks, stream memory operations, and
// which kernels run side by side. Times are device time, so they hold on a loaded machine.
#include <hip/hip_ext.h>

#include <algorithm>
#include <atomic>

#include "device_test.h"

namespace {

void spin(uint64_t microseconds, int grid, hipStream_t stream) {
  softgpu_spin_us<<<grid, kBlock, 0, stream>>>(microseconds);
  HIP(hipGetLastError());
}

float elapsed(hipEvent_t from, hipEvent_t to) {
  float ms = 0;
  HIP(hipEventElapsedTime(&ms, from, to));
  return ms;
}

struct Event {
  hipEvent_t handle;
  Event() { HIP(hipEventCreate(&handle)); }
  ~Event() { HIP(hipEventDestroy(handle)); }
};

// Elapsed time is that of the device: ten kernels of 2 ms in a row are 20 ms.
bool are_event_times() {
  hipStream_t stream;
  HIP(hipStreamCreate(&stream));
  Event from;
  Event to;
  spin(500'000, kFullGrid, stream);  // long enough to queue the rest behind it, also on a busy machine
  HIP(hipEventRecord(from.handle, stream));
  for (int i = 0; i < 10; ++i)
    spin(2'000, kFullGrid, stream);
  HIP(hipEventRecord(to.handle, stream));
  REQUIRE(hipEventQuery(to.handle) == hipErrorNotReady);
  REQUIRE(hipStreamQuery(stream) == hipErrorNotReady);
  HIP(hipEventSynchronize(to.handle));
  const float ms = elapsed(from.handle, to.handle);
  HIP(hipStreamSynchronize(stream));
  REQUIRE(hipStreamQuery(stream) == hipSuccess);
  HIP(hipStreamDestroy(stream));
  return ms > 19.5f && ms < 24.0f;
}

// Two kernels of 40 ms on two streams: the time from the start of one to the end of the other.
float both_ms(int grid) {
  hipStream_t streams[2];
  Event from[2];
  Event to[2];
  for (hipStream_t& s : streams)
    HIP(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
  for (int i = 0; i < 2; ++i) {
    HIP(hipEventRecord(from[i].handle, streams[i]));
    spin(40'000, grid, streams[i]);
    HIP(hipEventRecord(to[i].handle, streams[i]));
  }
  HIP(hipDeviceSynchronize());
  // Either may be first: the host decides which packet processor wakes first.
  const float both = std::max(elapsed(from[0].handle, to[1].handle), elapsed(from[1].handle, to[0].handle));
  for (hipStream_t s : streams)
    HIP(hipStreamDestroy(s));
  return both;
}

// Two kernels that each need half the device overlap; two that need all of it do not.
void side_by_side(int grid, bool overlap) {
  REQUIRE(seen([=] {
    const float both = both_ms(grid);
    return overlap ? both < 70.0f : both > 75.0f;
  }));
}

void waits_across_streams() {
  hipStream_t first;
  hipStream_t second;
  HIP(hipStreamCreate(&first));
  HIP(hipStreamCreate(&second));
  int* values = nullptr;
  HIP(hipMalloc(&values, 64 * sizeof(int)));
  HIP(hipMemset(values, 0, 64 * sizeof(int)));
  HIP(hipDeviceSynchronize());
  Event done;
  Event begin;
  Event end;
  HIP(hipEventRecord(begin.handle, first));
  spin(10'000, 1, first);
  launch_add(values, 64, 3, first);
  HIP(hipEventRecord(done.handle, first));
  HIP(hipStreamWaitEvent(second, done.handle, 0));
  launch_add(values, 64, 4, second);
  HIP(hipEventRecord(end.handle, second));
  HIP(hipStreamSynchronize(second));
  REQUIRE(elapsed(begin.handle, end.handle) > 11.5f);
  REQUIRE(all_equal(read_back(values, 64), 7));
  HIP(hipFree(values));
  HIP(hipStreamDestroy(first));
  HIP(hipStreamDestroy(second));
}

void callbacks() {
  hipStream_t stream;
  HIP(hipStreamCreate(&stream));
  int* pinned = nullptr;
  HIP(hipHostMalloc(&pinned, 64 * sizeof(int)));
  std::memset(pinned, 0, 64 * sizeof(int));
  static std::atomic<int> seen{-1};
  launch_add(pinned, 64, 9, stream);
  HIP(hipStreamAddCallback(
      stream, [](hipStream_t, hipError_t, void* p) { seen = *static_cast<int*>(p); }, pinned, 0));
  launch_add(pinned, 64, 1, stream);
  HIP(hipStreamSynchronize(stream));
  REQUIRE(seen == 9 && pinned[0] == 10);
  HIP(hipHostFree(pinned));
  HIP(hipStreamDestroy(stream));
}

void special_streams() {
  int* values = nullptr;
  HIP(hipMalloc(&values, 64 * sizeof(int)));
  HIP(hipMemset(values, 0, 64 * sizeof(int)));
  int least = 0;
  int greatest = 0;
  HIP(hipDeviceGetStreamPriorityRange(&least, &greatest));
  hipStream_t urgent;
  HIP(hipStreamCreateWithPriority(&urgent, hipStreamNonBlocking, greatest));
  hipStream_t masked;
  const uint32_t mask[] = {0xff};
  HIP(hipExtStreamCreateWithCUMask(&masked, 1, mask));
  int expected = 0;
  for (hipStream_t s : {urgent, masked, hipStreamPerThread, static_cast<hipStream_t>(nullptr)}) {
    launch_add(values, 64, 1, s);
    HIP(hipStreamSynchronize(s));
    REQUIRE(all_equal(read_back(values, 64), ++expected));
  }
  HIP(hipStreamDestroy(urgent));
  HIP(hipStreamDestroy(masked));
  HIP(hipFree(values));
}

void stream_memory_operations() {
  hipStream_t waiter;
  hipStream_t writer;
  HIP(hipStreamCreateWithFlags(&waiter, hipStreamNonBlocking));
  HIP(hipStreamCreateWithFlags(&writer, hipStreamNonBlocking));
  uint64_t* flag = nullptr;
  HIP(hipExtMallocWithFlags(reinterpret_cast<void**>(&flag), 8, hipMallocSignalMemory));
  *flag = 0;
  int* values = nullptr;
  HIP(hipHostMalloc(&values, 64 * sizeof(int)));
  std::memset(values, 0, 64 * sizeof(int));
  HIP(hipStreamWaitValue64(waiter, flag, 5, hipStreamWaitValueEq, ~0ull));
  launch_add(values, 64, 1, waiter);
  spin(5'000, 1, writer);
  HIP(hipStreamSynchronize(writer));
  REQUIRE(hipStreamQuery(waiter) == hipErrorNotReady && values[0] == 0);
  HIP(hipStreamWriteValue64(writer, flag, 5, 0));
  HIP(hipStreamSynchronize(waiter));
  REQUIRE(values[0] == 1);
  HIP(hipStreamSynchronize(writer));
  HIP(hipFree(flag));
  HIP(hipHostFree(values));
  HIP(hipStreamDestroy(waiter));
  HIP(hipStreamDestroy(writer));
}

// More streams than hardware queues, each in order, all at the same time.
void many_streams() {
  constexpr int kStreams = 12;
  hipStream_t streams[kStreams];
  int* values = nullptr;
  HIP(hipMalloc(&values, kStreams * 64 * sizeof(int)));
  HIP(hipMemset(values, 0, kStreams * 64 * sizeof(int)));
  HIP(hipDeviceSynchronize());
  for (hipStream_t& s : streams)
    HIP(hipStreamCreate(&s));
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < kStreams; ++i)
      launch_add(values + i * 64, 64, i, streams[i]);
  }
  HIP(hipDeviceSynchronize());
  const std::vector<int> result = read_back(values, kStreams * 64);
  for (int i = 0; i < kStreams * 64; ++i)
    REQUIRE(result[i] == 5 * (i / 64));
  for (hipStream_t s : streams)
    HIP(hipStreamDestroy(s));
  HIP(hipFree(values));
}

}  // namespace

int main() {
  REQUIRE(seen(are_event_times));
  side_by_side(kHalfGrid, true);
  side_by_side(kFullGrid, false);
  waits_across_streams();
  callbacks();
  special_streams();
  stream_memory_operations();
  many_streams();
}
