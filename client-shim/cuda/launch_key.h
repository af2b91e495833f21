// Identifies what a call launches by a number, which is equal for launches that should take equally long. Kernels count
// by function, grid and block; graphs by their executable; copies and fills by entry point and sizes, to a power of
// two.
//
// Overloads compute it from the arguments of each entry point by their types. If two kinds get the same key, costs are
// less exact, but nothing is wrong. Thread rule: pure.
#pragma once

#include "client-shim/cuda/types.h"
#include "client-shim/stub/mix_key.h"

namespace xschedd::shim::cuda {

// Copies, fills, and other calls with sizes. A device address counts as a size, because its type is the same; nearly
// all addresses have the same power of two.
template <typename... Arguments>
uint64_t LaunchKey(uint32_t entry, Arguments... arguments) {
  return MixArguments(entry, arguments...);
}

// Kernels.
template <typename... Rest>
uint64_t LaunchKey(uint32_t entry, Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, Rest...) {
  const uint64_t key = MixKey(MixPointer(MixKey(2, entry), function), gx);
  return MixKey(MixKey(MixKey(key, uint64_t{gy} << 32 | gz), bx), uint64_t{by} << 32 | bz);
}
inline uint64_t LaunchKey(uint32_t entry, const LaunchConfig* config, Handle function, void*, void*) {
  if (config == nullptr) return 0;
  uint64_t key = MixPointer(MixKey(3, entry), function);
  for (int i = 0; i < 3; ++i)
    key = MixKey(key, uint64_t{config->grid[i]} << 32 | config->block[i]);
  return key;
}
// An item of a list.
inline uint64_t ItemKey(uint32_t entry, const FunctionLaunchParams& item) {
  return LaunchKey(entry, item.function, item.grid[0], item.grid[1], item.grid[2], item.block[0], item.block[1],
                   item.block[2]);
}
inline uint64_t LaunchKey(uint32_t entry, Handle function, int gx, int gy, Stream = nullptr) {
  return LaunchKey(entry, function, static_cast<unsigned>(gx), static_cast<unsigned>(gy), 1u, 1u, 1u, 1u);
}
inline uint64_t LaunchKey(uint32_t entry, Handle function) {
  return MixPointer(MixKey(4, entry), function);
}
// Graphs: (executable, stream).
inline uint64_t LaunchKey(uint32_t entry, Handle graph, Stream) {
  return MixPointer(MixKey(5, entry), graph);
}

}  // namespace xschedd::shim::cuda
