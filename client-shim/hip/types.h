// The types that only HIP has, for ROCm 5.2 to 7.x; stub/runtime_types.h has the others. tools/surface compares them
// with installed headers. Thread rule: plain data.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "client-shim/stub/runtime_types.h"

namespace xschedd::shim::hip {

inline constexpr int kDeviceToHost = 2;  // hipMemcpyKind

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

// From ROCm 5.2 in the headers, by value from 7.1: 8 bytes, in one register.
using MemLocation = Location;

// Descriptions of copies, only to read how much is copied: hip_Memcpy2D, hipMemcpy3DParms and hipMemcpy3DPeerParms.
// HIP_MEMCPY3D is not read: its members have 32 bits in ROCm 5, and 64 from ROCm 6 on.
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

// hipGraphInstantiateParams.
struct GraphInstantiateParams {
  Handle error_node;
  unsigned long long flags;
  int result;
  Stream upload_stream;
};
// Whether hipGraphInstantiateFlagUpload is set. `with`: may be null.
inline bool IsUploaded(const GraphInstantiateParams* with) {
  constexpr unsigned long long kUpload = 2;
  return with != nullptr && (with->flags & kUpload) != 0;
}
inline Stream UploadStreamOf(const GraphInstantiateParams* with) {
  return IsUploaded(with) ? with->upload_stream : nullptr;
}

}  // namespace xschedd::shim::hip
