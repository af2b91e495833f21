// Shared by the HIP programs that test the software GPU: checks that end the program with a message, a separate device
// name for each run (so that concurrent runs do not share a device), and kernels with host functions. Include it in one
// file of a program: it defines kernels and the kernel table.
#pragma once

#include <hip/hip_runtime.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tools/softgpu/softgpu.h"

// Ends the program at once, without the runtime's exit handlers, which might hang after a failure; it removes the
// shared memory in their place.
[[noreturn]] inline void fail(const char* file, int line, const char* what, const char* why) {
  std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, why);
  unlink((std::string("/dev/shm/softgpu.") + std::getenv("SOFTGPU_NAME")).c_str());
  std::_Exit(1);
}

#define REQUIRE(condition)                                            \
  do {                                                                \
    if (!(condition)) fail(__FILE__, __LINE__, #condition, "not so"); \
  } while (0)

#define HIP(call)                                                                                 \
  do {                                                                                            \
    const hipError_t hip_result = (call);                                                         \
    if (hip_result != hipSuccess) fail(__FILE__, __LINE__, #call, hipGetErrorString(hip_result)); \
  } while (0)

// Processes that a test starts inherit the name and so share the device.
__attribute__((constructor)) inline void use_own_device() {
  setenv("SOFTGPU_NAME", ("test-" + std::to_string(getpid())).c_str(), 0);
}

// Whether one of five attempts succeeds, for comparisons of times: a host that comes late spoils one, but not all.
inline bool seen(const std::function<bool()>& attempt) {
  for (int i = 0; i < 5; ++i)
    if (attempt()) return true;
  return false;
}

inline double milliseconds_now() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename T>
T argument(const softgpu_dispatch* dispatch, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(dispatch->kernarg) + offset, sizeof value);
  return value;
}

// Takes as long as its argument says, on as many compute units as its grid needs; see tools/softgpu.
extern "C" __global__ void softgpu_spin_us(uint64_t microseconds) {
  (void)microseconds;
}

extern "C" __global__ void add_to(int* values, int count, int amount) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += amount;
}

// The whole device: 80 compute units of 32 workgroups of 64.
constexpr int kFullGrid = 80 * 32;
constexpr int kHalfGrid = kFullGrid / 2;
constexpr int kBlock = 64;

inline void add_to_on_host(const softgpu_dispatch* d) {
  int* values = argument<int*>(d, 0);
  const int count = argument<int>(d, 8);
  for (int i = 0; i < count && i < static_cast<int>(d->grid_size[0]); ++i)
    values[i] += argument<int>(d, 12);
}

inline uint64_t one_millisecond(const softgpu_dispatch*) {
  return 1'000'000;
}

extern "C" const softgpu_kernel_table* softgpu_kernels(uint32_t) {
  static const softgpu_kernel kernels[] = {{"add_to", add_to_on_host, one_millisecond}};
  static const softgpu_kernel_table table = {SOFTGPU_ABI_VERSION, 1, kernels};
  return &table;
}

// add_to on the device takes 1 ms of device time.
inline void launch_add(int* values, int count, int amount, hipStream_t stream) {
  add_to<<<(count + kBlock - 1) / kBlock, kBlock, 0, stream>>>(values, count, amount);
}

inline std::vector<int> read_back(const int* device, size_t count) {
  std::vector<int> host(count);
  HIP(hipMemcpy(host.data(), device, count * sizeof(int), hipMemcpyDeviceToHost));
  return host;
}

inline bool all_equal(const std::vector<int>& values, int wanted) {
  for (int v : values) {
    if (v != wanted) return false;
  }
  return true;
}
