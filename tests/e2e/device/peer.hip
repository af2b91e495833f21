// Two devices: different PCI addresses, peer copies, kernels that run on both at the same time, an event across
// devices.
#include "device_test.h"

int main() {
  setenv("SOFTGPU_DEVICES", "2", 1);
  int count = 0;
  HIP(hipGetDeviceCount(&count));
  REQUIRE(count == 2);
  char first[32];
  char second[32];
  HIP(hipDeviceGetPCIBusId(first, sizeof first, 0));
  HIP(hipDeviceGetPCIBusId(second, sizeof second, 1));
  REQUIRE(std::string(first) != second);
  int access = 0;
  HIP(hipDeviceCanAccessPeer(&access, 0, 1));
  REQUIRE(access == 1);

  constexpr int kCount = 100'000;
  int* values[2];
  hipStream_t streams[2];
  for (int d = 0; d < 2; ++d) {
    HIP(hipSetDevice(d));
    HIP(hipDeviceEnablePeerAccess(1 - d, 0));
    HIP(hipMalloc(&values[d], kCount * sizeof(int)));
    HIP(hipStreamCreate(&streams[d]));
  }
  HIP(hipSetDevice(0));
  HIP(hipMemset(values[0], 0, kCount * sizeof(int)));
  launch_add(values[0], kCount, 8, nullptr);
  HIP(hipDeviceSynchronize());
  HIP(hipMemcpyPeer(values[1], 1, values[0], 0, kCount * sizeof(int)));
  REQUIRE(all_equal(read_back(values[1], kCount), 8));

  // The device that delays the other one through an event.
  hipEvent_t done;
  HIP(hipEventCreateWithFlags(&done, hipEventDisableTiming));
  launch_add(values[0], kCount, 1, streams[0]);
  HIP(hipMemcpyPeerAsync(values[1], 1, values[0], 0, kCount * sizeof(int), streams[0]));
  HIP(hipEventRecord(done, streams[0]));
  HIP(hipSetDevice(1));
  HIP(hipStreamWaitEvent(streams[1], done, 0));
  launch_add(values[1], kCount, 1, streams[1]);
  HIP(hipStreamSynchronize(streams[1]));
  REQUIRE(all_equal(read_back(values[1], kCount), 10));

  // A full kernel on each: they overlap.
  REQUIRE(seen([&streams] {
    const double begin = milliseconds_now();
    for (int d = 0; d < 2; ++d) {
      HIP(hipSetDevice(d));
      softgpu_spin_us<<<kFullGrid, kBlock, 0, streams[d]>>>(200'000);
    }
    for (int d = 0; d < 2; ++d)
      HIP(hipStreamSynchronize(streams[d]));
    const double both = milliseconds_now() - begin;
    return both > 199 && both < 350;
  }));
}
