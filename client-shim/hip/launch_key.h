// Identifies what a call launches by a number, which is equal for launches that should take equally long. Kernels count
// by function, grid and block; graphs by their executable; copies and fills by entry point and sizes, to a power of
// two.
//
// Overloads compute it from the arguments of each entry point by their types. If two kinds get the same key, costs are
// less exact, but nothing is wrong. Thread rule: pure.
#pragma once

#include "client-shim/hip/types.h"
#include "client-shim/stub/mix_key.h"

namespace xschedd::shim::hip {

using shim::MixArgument;
inline uint64_t MixArgument(uint64_t key, Extent extent) {
  return MixArgument(key, uint64_t{extent.width * extent.height * extent.depth});
}
inline uint64_t MixArgument(uint64_t key, PitchedPtr) {
  return key;
}
// The runtime refuses a null description.
inline uint64_t MixArgument(uint64_t key, const Copy2D* copy) {
  return copy == nullptr ? key : MixArgument(key, uint64_t{copy->width * copy->height});
}
inline uint64_t MixArgument(uint64_t key, const Copy3D* copy) {
  return copy == nullptr ? key : MixArgument(key, copy->extent);
}
inline uint64_t MixArgument(uint64_t key, const Copy3DPeer* copy) {
  return copy == nullptr ? key : MixArgument(key, copy->extent);
}

// Copies, fills, and other calls with sizes.
template <typename... Arguments>
uint64_t LaunchKey(uint32_t entry, Arguments... arguments) {
  return MixArguments(entry, arguments...);
}

// Kernels of the compiler's launch syntax.
template <typename... Rest>
uint64_t LaunchKey(uint32_t, const void* function, Dim3 grid, Dim3 block, Rest...) {
  // The upper half of `z` is padding.
  const uint64_t key = MixKey(MixKey(MixPointer(2, function), grid.xy), static_cast<uint32_t>(grid.z));
  return MixKey(MixKey(key, block.xy), static_cast<uint32_t>(block.z));
}
// Kernels of modules.
template <typename... Rest>
uint64_t LaunchKey(uint32_t entry, Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, Rest...) {
  const uint64_t key = MixKey(MixKey(MixPointer(MixKey(3, entry), function), gx), uint64_t{gy} << 32 | gz);
  return MixKey(MixKey(key, bx), uint64_t{by} << 32 | bz);
}
inline uint64_t LaunchKey(uint32_t entry, size_t function, const void*, const void*, unsigned, Stream, void**) {
  return MixKey(MixKey(4, entry), function);
}
// Kernels whose grid and block lie in a structure: a configuration, or an item of a list.
inline uint64_t ConfiguredKey(uint32_t entry, const void* function, const uint32_t (&grid)[3],
                              const uint32_t (&block)[3]) {
  uint64_t key = MixPointer(MixKey(5, entry), function);
  for (int i = 0; i < 3; ++i)
    key = MixKey(key, uint64_t{grid[i]} << 32 | block[i]);
  return key;
}
inline uint64_t ConfiguredKey(uint32_t entry, const LaunchConfig* config, const void* function) {
  return config == nullptr ? 0 : ConfiguredKey(entry, function, config->grid, config->block);
}
template <typename Item>
uint64_t ItemKey(uint32_t entry, const Item& item) {
  return ConfiguredKey(entry, item.function, item.grid, item.block);
}
inline uint64_t LaunchKey(uint32_t entry, const LaunchConfig* config, const void* function, void**) {
  return ConfiguredKey(entry, config, function);
}
inline uint64_t LaunchKey(uint32_t entry, const LaunchConfig* config, Handle function, void**, void**) {
  return ConfiguredKey(entry, config, function);
}
// Kernels by hipLaunchByPtr, whose grid is not known here.
inline uint64_t LaunchKey(uint32_t entry, const void* function) {
  return MixPointer(MixKey(7, entry), function);
}
// Instantiating a graph and uploading it: unknown.
inline uint64_t LaunchKey(uint32_t, Handle*, Handle, GraphInstantiateParams*) {
  return 0;
}
// Graphs: (executable, stream).
inline uint64_t LaunchKey(uint32_t entry, Handle graph, Stream) {
  return MixPointer(MixKey(6, entry), graph);
}

}  // namespace xschedd::shim::hip
