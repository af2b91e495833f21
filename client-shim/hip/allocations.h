// HIP's own part of what the rows of allocations say (stub/allocation.h). Thread rule: pure, but for g_made_pools.
#pragma once

#include "client-shim/hip/types.h"
#include "client-shim/stub/allocation.h"
#include "client-shim/stub/made_pools.h"

namespace xschedd::shim::hip {

extern MadePools g_made_pools;

// hipChannelFormatDesc: bits of each channel.
struct ChannelFormat {
  int x, y, z, w;
  int kind;
};
inline uint64_t BytesOfElement(const ChannelFormat& format) {
  uint64_t bits = 0;
  for (const int channel : {format.x, format.y, format.z, format.w})
    bits += channel > 0 ? static_cast<uint64_t>(channel) : 0;
  return (bits + 7) / 8;
}
inline uint64_t BytesOf(const ChannelFormat* format, const Extent& extent) {
  if (format == nullptr) return 0;
  return Product(Product(extent.width, AtLeastOne(extent.height), AtLeastOne(extent.depth)), BytesOfElement(*format));
}
inline uint64_t BytesOfLevels(const ChannelFormat* format, const Extent& extent, unsigned levels) {
  if (format == nullptr) return 0;
  return shim::BytesOfLevels(extent.width, extent.height, extent.depth, BytesOfElement(*format), levels);
}
using shim::BytesOf;
using shim::BytesOfLevels;

// hipMemAllocationProp: type, kind of handle, location. Up to ROCm 5.4 it began with a byte for compression, and the
// location; a type is never 0.
struct AllocationProperties {
  unsigned words[4];
};
inline int DeviceOf(const AllocationProperties* with, int runtime_version) {
  constexpr int kNoCompressionByte = 50'500'000;
  if (with == nullptr) return kNoDevice;
  const bool is_old = runtime_version < kNoCompressionByte && (with->words[0] & 0xff) == 0;
  const unsigned* const location = &with->words[is_old ? 1 : 2];
  return DeviceAt({static_cast<int>(location[0]), static_cast<int>(location[1])});
}

// Where hipDeviceProp_t has totalGlobalMem: behind the name, and from ROCm 6 on behind uuid and luid, too.
inline constexpr size_t kTotalAtFirst = 256;
inline constexpr size_t kTotalFrom6 = 288;
inline size_t* TotalIn(void* properties, size_t offset) {
  return properties != nullptr ? reinterpret_cast<size_t*>(static_cast<char*>(properties) + offset) : nullptr;
}

}  // namespace xschedd::shim::hip
