// The CUDA driver's types that the shim needs to see, declared here so that it builds without NVIDIA's headers and one
// build serves every driver. What counts is that each travels in the same registers and stack slots as the driver's own
// (x86-64 System V ABI); tests/unit/shim/cuda compares them with cuda.h where that is installed.
// Source: cuda.h 13.0; none of these has changed since it appeared. Thread rule: plain data.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace xschedd::shim::cuda {

using Result = int;  // CUresult, an enum
inline constexpr Result kSuccess = 0;
inline constexpr Result kErrorNotReady = 600;
inline constexpr Result kErrorNotSupported = 801;
inline constexpr Result kErrorWrongThread = 908;  // CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD

using Handle = void*;  // CUcontext, CUfunction, CUgraphExec, CUarray, ...
using Stream = void*;  // CUstream
using Event = void*;   // CUevent
// 64 bits from CUDA 3.2 on, 32 before. A register or stack slot either way, and ours leaves its upper half alone.
using DevicePtr = uint64_t;
using MemLocation = uint64_t;  // CUmemLocation, passed by value: two 32-bit numbers in one register

// CU_STREAM_PER_THREAD; CU_STREAM_LEGACY is 1. The same numbers as HIP's, which is what the core knows.
inline constexpr uintptr_t kPerThreadStream = 2;
inline Stream PerThread(Stream stream) {
  return stream != nullptr ? stream : reinterpret_cast<Stream>(kPerThreadStream);
}

// Flags of cuGetProcAddress: 0 and 1 ask for the legacy default stream.
inline constexpr uint64_t kPerThreadFlag = 2;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

// The head of CUlaunchConfig: grid, block, dynamic shared memory, stream; attributes follow.
struct LaunchConfig {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared;
  Stream stream;
};
static_assert(offsetof(LaunchConfig, stream) == 32);
inline Stream StreamOf(const LaunchConfig* config) {
  return config != nullptr ? config->stream : nullptr;
}

// CUDA_LAUNCH_PARAMS: function, grid, block, shared memory, stream, arguments.
struct LaunchParams {
  Handle function;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared;
  Stream stream;
  void** arguments;
};
static_assert(sizeof(LaunchParams) == 56 && offsetof(LaunchParams, stream) == 40);

}  // namespace xschedd::shim::cuda
