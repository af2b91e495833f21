// Numbers, names and table positions of the wrapped entry points of entry_points.def.
// Thread rule: constants.
#pragma once

#include <stdint.h>

namespace xschedd::shim {

inline constexpr int kNoIndex = -1;

// clang-format off
#define XS_EACH(name, index, params, args) kEntry_##name,
enum Entry : uint32_t {
#include "client-shim/hip/entry_points_each.inc"
#include "client-shim/hip/entry_points.def"
#include "client-shim/hip/entry_points_undef.inc"
  kEntryCount
};
#undef XS_EACH
// clang-format on

extern const char* const kEntryNames[kEntryCount];
extern const int16_t kTableIndex[kEntryCount];

// The entry called `name`, or kEntryCount.
uint32_t EntryByName(const char* name);

}  // namespace xschedd::shim
