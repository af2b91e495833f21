// The HIP types that the shim needs to see, declared here so that one build serves ROCm 5.2 to 7.x without their
// headers. What counts is that each travels in the same registers and stack slots as the runtime's own (x86-64 System V
// ABI); tests/unit/shim/signatures_test compares them with the headers that are installed. Thread rule: plain data.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace xschedd::shim {

using HipError = int;  // hipError_t, an enum
inline constexpr HipError kHipSuccess = 0;
inline constexpr HipError kHipErrorNotReady = 600;
inline constexpr HipError kHipErrorNotSupported = 801;
inline constexpr HipError kHipErrorWrongThread = 908;  // hipErrorStreamCaptureWrongThread

using Handle = void*;  // hipFunction_t, hipGraphExec_t, hipArray_t, ...
using Stream = void*;  // hipStream_t
using Event = void*;   // hipEvent_t

inline constexpr int kDeviceToHost = 2;  // hipMemcpyKind

// hipStreamPerThread is ((hipStream_t)2) in every version.
inline constexpr uintptr_t kPerThreadStream = 2;
inline constexpr uintptr_t kLegacyStream = 1;  // hipStreamLegacy, from ROCm 6.2
inline Stream PerThread(Stream stream) {
  return stream != nullptr ? stream : reinterpret_cast<Stream>(kPerThreadStream);
}

// dim3 is three 32-bit numbers: 12 bytes, passed in two registers or two stack slots. Two 64-bit halves travel alike,
// and the compiler passes them on without taking them apart.
struct Dim3 {
  uint64_t xy;
  uint64_t z;
};

// Larger than 16 bytes: passed in memory, by value.
struct PitchedPtr {
  void* pointer;
  size_t pitch, width, height;
};
struct Extent {
  size_t width, height, depth;
};

// hipMemLocation, from ROCm 5.2 in the headers, by value from 7.1: 8 bytes, in one register.
struct MemLocation {
  int type;
  int id;
};

// Descriptions of copies, as far as they say how much is copied: hip_Memcpy2D, hipMemcpy3DParms and
// hipMemcpy3DPeerParms. HIP_MEMCPY3D is not looked into: its numbers are of 32 bits in ROCm 5 and of 64 from 6.
struct Copy2D {
  char where[112];
  size_t width, height;
};
struct Copy3D {
  char where[128];
  Extent extent;
};
struct Copy3DPeer {
  char where[144];
  Extent extent;
};
struct DriverCopy3D;

// hipLaunchParams: function, grid (12 bytes), block (12 bytes), arguments, shared memory, stream.
struct LaunchParams {
  void* function;
  uint32_t grid[3];
  uint32_t block[3];
  void** arguments;
  size_t shared;
  Stream stream;
};
static_assert(sizeof(LaunchParams) == 56 && offsetof(LaunchParams, stream) == 48);

// hipFunctionLaunchParams: function, grid, block, shared memory (32 bits), stream, arguments.
struct FunctionLaunchParams {
  void* function;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared;
  Stream stream;
  void** arguments;
};
static_assert(sizeof(FunctionLaunchParams) == 56 && offsetof(FunctionLaunchParams, stream) == 40);

// The head of hipLaunchConfig_t (grid, block, size_t shared, stream) and of HIP_LAUNCH_CONFIG (the same, with a 32-bit
// `shared`): the stream is at the same place in both.
struct LaunchConfig {
  uint32_t grid[3];
  uint32_t block[3];
  size_t shared;
  Stream stream;
};
static_assert(offsetof(LaunchConfig, stream) == 32);
// A null configuration is for the runtime to refuse.
inline Stream StreamOf(const LaunchConfig* config) {
  return config != nullptr ? config->stream : nullptr;
}

// hipGraphInstantiateParams.
struct GraphInstantiateParams {
  Handle error_node;
  unsigned long long flags;
  int result;
  Stream upload_stream;
};
inline constexpr unsigned long long kGraphInstantiateUpload = 2;  // hipGraphInstantiateFlagUpload

}  // namespace xschedd::shim
