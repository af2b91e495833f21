// What the rows of allocations say (wrapper_rows.inc): on which device, how many bytes, and under which handle it can
// be found again. Sizes are the arguments', so every product saturates. An array's is that of its elements: how a
// runtime lays it out is its own affair. Thread rule: pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <type_traits>

#include "client-shim/core/interface.h"
#include "client-shim/stub/runtime_types.h"

namespace xschedd::shim {

// As it is asked for. `device`: an ordinal; kDeviceOfStream: that of `stream`, which if null is the current one's;
// kNoDevice: host memory, or none yet, and nothing to count.
inline constexpr int kDeviceOfStream = -1;
inline constexpr int kNoDevice = -3;
struct Wanted {
  MemoryKind kind;
  int device;
  Stream stream;
  uint64_t bytes;
};
// What the call gave. A handle of 0 is nothing.
struct Allocated {
  uint64_t handle;
  uint64_t bytes;
};

inline uint64_t Product(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? ~uint64_t{0} : product;
}
inline uint64_t Product(uint64_t a, uint64_t b, uint64_t c) {
  return Product(Product(a, b), c);
}
inline uint64_t Sum(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? ~uint64_t{0} : sum;
}

// ---- where
inline Wanted OnCurrent(uint64_t bytes) {
  return {MemoryKind::kPlain, kDeviceOfStream, nullptr, bytes};
}
inline Wanted OnStream(uint64_t bytes, Stream stream) {
  return {MemoryKind::kPooled, kDeviceOfStream, stream, bytes};
}
inline Wanted InPool(uint64_t bytes, int device, Stream stream) {
  return {MemoryKind::kPooled, device, stream, bytes};
}
inline Wanted Physical(uint64_t bytes, int device) {
  return {MemoryKind::kPhysical, device, nullptr, bytes};
}
inline Wanted NotHere() {
  return {MemoryKind::kPlain, kNoDevice, nullptr, 0};
}

// ---- what it came to
template <typename Value>
uint64_t AsHandle(Value value) {
  if constexpr (std::is_pointer_v<Value>) {
    return reinterpret_cast<uintptr_t>(value);
  } else {
    return value;  // 32 bits in the driver's first functions
  }
}
template <typename Out>
uint64_t HandleIn(const Out* out) {
  return out != nullptr ? AsHandle(*out) : 0;
}

// ---- rows with a pitch
// Of those that the runtimes choose (AMD 256 bytes, NVIDIA 512), the larger: before the call its own is not known.
inline uint64_t Pitched(uint64_t width, uint64_t height) {
  constexpr uint64_t kLargest = 512;
  const uint64_t rounded = Sum(width, kLargest - 1);
  return Product(rounded == ~uint64_t{0} ? rounded : rounded / kLargest * kLargest, height);
}

// ---- arrays
// hipArray_Format and CUarray_format: bytes of a channel. Of what is not listed no more than four (block compression,
// video), so that it is rather too much.
inline uint64_t FormatBytes(unsigned format) {
  switch (format) {
    case 0x01:  // unsigned and signed 8 bits
    case 0x08:
      return 1;
    case 0x02:  // unsigned and signed 16 bits, half
    case 0x09:
    case 0x10:
      return 2;
    default:
      return 4;
  }
}

// HIP_ARRAY_DESCRIPTOR and CUDA_ARRAY_DESCRIPTOR; the driver's first version has numbers of 32 bits.
template <typename Number>
struct ArrayShape {
  Number width, height;
  unsigned format, channels;
};
// HIP_ARRAY3D_DESCRIPTOR and CUDA_ARRAY3D_DESCRIPTOR.
template <typename Number>
struct ArrayShape3D {
  Number width, height, depth;
  unsigned format, channels, flags;
};
static_assert(sizeof(ArrayShape<size_t>) == 24 && sizeof(ArrayShape3D<size_t>) == 40);

inline uint64_t AtLeastOne(uint64_t number) {
  return number == 0 ? 1 : number;
}
// Null is for the runtime to refuse.
template <typename Number>
uint64_t BytesOf(const ArrayShape<Number>* shape) {
  if (shape == nullptr) return 0;
  return Product(Product(shape->width, AtLeastOne(shape->height)),
                 Product(FormatBytes(shape->format), shape->channels));
}
template <typename Number>
uint64_t BytesOf(const ArrayShape3D<Number>* shape) {
  if (shape == nullptr) return 0;
  const uint64_t elements = Product(shape->width, AtLeastOne(shape->height), AtLeastOne(shape->depth));
  return Product(elements, Product(FormatBytes(shape->format), shape->channels));
}
// Each level has half the extents of the one before, but no less than one.
inline uint64_t BytesOfLevels(uint64_t width, uint64_t height, uint64_t depth, uint64_t element, unsigned levels) {
  constexpr unsigned kMostLevels = 64;  // extents have 64 bits
  uint64_t bytes = 0;
  for (unsigned level = 0; level < levels && level < kMostLevels; ++level) {
    bytes = Sum(bytes, Product(Product(AtLeastOne(width), AtLeastOne(height), AtLeastOne(depth)), element));
    width >>= 1;
    height >>= 1;
    depth >>= 1;
  }
  return bytes;
}
template <typename Number>
uint64_t BytesOfLevels(const ArrayShape3D<Number>* shape, unsigned levels) {
  if (shape == nullptr) return 0;
  return BytesOfLevels(shape->width, shape->height, shape->depth, Product(FormatBytes(shape->format), shape->channels),
                       levels);
}

// ---- physical memory, pools and graphs
inline int DeviceAt(const Location& location) {
  constexpr int kDevice = 1;  // hipMemLocationTypeDevice, CU_MEM_LOCATION_TYPE_DEVICE
  return location.type == kDevice ? location.id : kNoDevice;
}
// hipMemPoolProps and CUmemPoolProps, as far as they say where.
struct PoolProperties {
  int type;
  int handle_types;
  Location location;
  char rest[72];
};
inline int DeviceOfPool(const PoolProperties* properties) {
  return properties != nullptr ? DeviceAt(properties->location) : kNoDevice;
}
// hipMemAllocNodeParams and CUDA_MEM_ALLOC_NODE_PARAMS.
struct AllocNodeParams {
  PoolProperties pool;
  const void* access;
  size_t access_count;
  size_t bytes;
  uint64_t address;  // written by the call
};
static_assert(sizeof(PoolProperties) == 88 && offsetof(AllocNodeParams, bytes) == 104);
// hipGraphNodeParams and CUgraphNodeParams.
struct GraphNodeParams {
  int type;
  int reserved[3];
  AllocNodeParams allocation;  // of a union
};
static_assert(offsetof(GraphNodeParams, allocation) == 16);

inline Wanted OfNode(const AllocNodeParams* node) {
  if (node == nullptr) return NotHere();
  return InPool(node->bytes, DeviceAt(node->pool.location), nullptr);
}
inline Wanted OfNode(const GraphNodeParams* node) {
  constexpr int kAllocation = 10;  // hipGraphNodeTypeMemAlloc, CU_GRAPH_NODE_TYPE_MEM_ALLOC
  return node != nullptr && node->type == kAllocation ? OfNode(&node->allocation) : NotHere();
}

struct MappingChange {
  enum Kind { kMapped, kUnmapped, kRetained };
  Kind kind;
  uint64_t at;
  uint64_t bytes;
  uint64_t memory;
  void Tell(const ClientTable* client) const {
    switch (kind) {
      case kMapped:
        return client->memory_mapped(at, bytes, memory);
      case kUnmapped:
        return client->memory_unmapped(at, bytes);
      case kRetained:
        return client->memory_retained(memory);
    }
  }
};

// ---- what is shown of a device
// A call that tells no free memory.
inline constexpr size_t* kNotTold = nullptr;
// Null, where the program did not ask for one of the two.
template <typename Free, typename Total>
void ShowLimited(const MemoryView& view, Free* free, Total* total) {
  if (view.limit_bytes == 0) return;
  const uint64_t left = view.limit_bytes > view.used_bytes ? view.limit_bytes - view.used_bytes : 0;
  if (total != nullptr && *total > view.limit_bytes) *total = static_cast<Total>(view.limit_bytes);
  if (free != nullptr && *free > left) *free = static_cast<Free>(left);
}

}  // namespace xschedd::shim
