// Mixes what a call launches into one number, for the front ends' launch keys. A size counts by its power of two. A
// pointer does not count, unless it identifies what is launched (MixPointer). Thread rule: pure.
#pragma once

#include <stdint.h>

#include "client-shim/stub/runtime_types.h"

namespace xschedd::shim {

inline uint64_t MixKey(uint64_t key, uint64_t value) {
  key = (key ^ value) * 0x9e3779b97f4a7c15ull;
  return key ^ (key >> 29);
}
inline uint64_t MixPointer(uint64_t key, const void* value) {
  return MixKey(key, reinterpret_cast<uintptr_t>(value));
}

inline uint64_t MixArgument(uint64_t key, uint64_t size) {
  return MixKey(key, size == 0 ? 0 : static_cast<uint64_t>(64 - __builtin_clzll(size)));
}
inline uint64_t MixArgument(uint64_t key, unsigned long long size) {
  return MixArgument(key, static_cast<uint64_t>(size));
}
inline uint64_t MixArgument(uint64_t key, unsigned size) {
  return MixArgument(key, uint64_t{size});
}
inline uint64_t MixArgument(uint64_t key, int value) {  // a direction, a fill value, a device
  return MixKey(key, static_cast<uint64_t>(static_cast<int64_t>(value)));
}
inline uint64_t MixArgument(uint64_t key, Location location) {
  return MixKey(key, uint64_t{static_cast<uint32_t>(location.type)} << 32 | static_cast<uint32_t>(location.id));
}
inline uint64_t MixArgument(uint64_t key, const void*) {  // a destination, a source, a stream
  return key;
}

// All arguments of a call that copies or fills. A vendor's own types have their MixArgument beside them.
template <typename... Arguments>
uint64_t MixArguments(uint32_t entry, Arguments... arguments) {
  uint64_t key = MixKey(1, entry);
  ((key = MixArgument(key, arguments)), ...);
  return key;
}

}  // namespace xschedd::shim
