// The types that HIP and the CUDA driver have in common, declared here so that one build works with every release of
// both and needs no headers of theirs. Each must be passed in the same registers and stack slots as the runtime's own
// type (x86-64 System V ABI); tests compare them with installed headers. Types of one vendor are in its types.h. Thread
// rule: plain data.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace xschedd::shim {

using Result = int;  // hipError_t and CUresult, both enums
inline constexpr Result kSuccess = 0;
inline constexpr Result kErrorOutOfMemory = 2;
inline constexpr Result kErrorNotReady = 600;
inline constexpr Result kErrorNotSupported = 801;
inline constexpr Result kErrorWrongThread = 908;  // hipErrorStreamCaptureWrongThread and CUDA's

using Handle = void*;  // hipFunction_t, CUfunction, hipGraphExec_t, CUarray, CUcontext, ...
using Stream = void*;  // hipStream_t, CUstream
using Event = void*;   // hipEvent_t, CUevent

// hipStreamPerThread and CU_STREAM_PER_THREAD. The legacy default stream is null; by its other name
// (hipStreamLegacy, from ROCm 6.2; CU_STREAM_LEGACY) it is 1.
inline constexpr uintptr_t kLegacyStream = 1;
inline constexpr uintptr_t kPerThreadStream = 2;
// What a null stream means to the entry points for per-thread default streams.
inline Stream PerThread(Stream stream) {
  return stream != nullptr ? stream : reinterpret_cast<Stream>(kPerThreadStream);
}

// The head of CUlaunchConfig, hipLaunchConfig_t and HIP_LAUNCH_CONFIG: grid, block, dynamic shared memory (32 bits or
// 64), stream. Attributes follow.
struct LaunchConfig {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared;
  Stream stream;
};
static_assert(offsetof(LaunchConfig, stream) == 32);
// Null for a null configuration, which the runtime refuses.
inline Stream StreamOf(const LaunchConfig* config) {
  return config != nullptr ? config->stream : nullptr;
}

// hipFunctionLaunchParams and CUDA_LAUNCH_PARAMS: function, grid, block, shared memory, stream, arguments.
struct FunctionLaunchParams {
  Handle function;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared;
  Stream stream;
  void** arguments;
};
static_assert(sizeof(FunctionLaunchParams) == 56 && offsetof(FunctionLaunchParams, stream) == 40);

// hipMemLocation and CUmemLocation.
struct Location {
  int type;
  int id;
};

}  // namespace xschedd::shim
