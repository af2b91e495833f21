// The kernels of the bench: each does some arithmetic that can be checked, and occupies the device for a given time. On
// a real GPU every wave polls the device's constant clock until the time is over; on the software GPU the kernel table
// below gives the time, and the arithmetic runs on the host. The arguments are one struct, so that the host function
// reads them directly from the kernel argument block.
//
// Include in one file of a program, which then exports its kernel table. Thread rule: as tools/softgpu/softgpu.h says.
#pragma once

#include <hip/hip_runtime.h>

#include <algorithm>
#include <cstdint>

#include "tools/softgpu/softgpu.h"

namespace burn {

// Two workgroups of 1024 take all 2048 threads of a CDNA compute unit.
inline constexpr unsigned kWorkgroupSize = 1024;
inline constexpr unsigned kWorkgroupsPerUnit = 2;

struct Arguments {
  std::uint32_t* data;
  std::uint32_t count;         // words at data; one thread of the grid for each
  std::uint32_t step;          // affects the result, so that a kernel that was skipped or run twice shows
  std::uint32_t microseconds;  // to occupy the device
  std::uint32_t ticks;         // the same in ticks of the device's constant clock
};

// The device's constant clock. HIP 5.2 declares wall_clock64 only when it compiles for the device.
__device__ inline long long ConstantClock() {
#if defined(__HIP_DEVICE_COMPILE__)
  return wall_clock64();
#else
  return 0;
#endif
}

// One step of a linear congruential generator; the CPU does the same to check the result.
__host__ __device__ inline std::uint32_t Mix(std::uint32_t value, std::uint32_t step) {
  return value * 1664525u + 1013904223u + step;
}

// The workgroups that fill this part of the device. Beside a kernel that fills the whole device no kernel of another
// process fits.
inline unsigned WorkgroupsForPart(unsigned compute_units, double part) {
  return std::max(1u, static_cast<unsigned>(compute_units * part)) * kWorkgroupsPerUnit;
}

// Constant clock ticks for a time. 100 MHz on CDNA, and if the runtime does not report it.
inline std::uint32_t TicksFor(std::uint32_t microseconds) {
  int kilohertz = 0;
#if HIP_VERSION >= 50400000
  if (hipDeviceGetAttribute(&kilohertz, hipDeviceAttributeWallClockRate, 0) != hipSuccess) kilohertz = 0;
#endif
  if (kilohertz <= 0) kilohertz = 100'000;
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(microseconds) * static_cast<unsigned>(kilohertz) / 1000);
}

}  // namespace burn

extern "C" __global__ void burn_mix(burn::Arguments arguments) {
  const long long start = burn::ConstantClock();
  const std::uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < arguments.count) arguments.data[index] = burn::Mix(arguments.data[index], arguments.step);
  while (burn::ConstantClock() - start < static_cast<long long>(arguments.ticks)) {
  }
}

extern "C" __global__ void burn_nothing() {}

extern "C" const softgpu_kernel_table* softgpu_kernels(std::uint32_t abi_version) {
  static const softgpu_kernel kernels[] = {
      {"burn_mix",
       [](const softgpu_dispatch* dispatch) {
         const auto& arguments = *static_cast<const burn::Arguments*>(dispatch->kernarg);
         for (std::uint32_t i = 0; i < arguments.count; ++i) {
           arguments.data[i] = burn::Mix(arguments.data[i], arguments.step);
         }
       },
       [](const softgpu_dispatch* dispatch) -> std::uint64_t {
         return std::uint64_t{1000} * static_cast<const burn::Arguments*>(dispatch->kernarg)->microseconds;
       }},
      {"burn_nothing", nullptr, [](const softgpu_dispatch*) -> std::uint64_t { return 1000; }},
  };
  static const softgpu_kernel_table table = {SOFTGPU_ABI_VERSION, sizeof(kernels) / sizeof(kernels[0]), kernels};
  return abi_version == SOFTGPU_ABI_VERSION ? &table : nullptr;
}
