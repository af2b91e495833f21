// Numbers, names and dispatch table positions of the wrapped entry points of entry_points.def.
// Thread rule: constants.
#pragma once

#include <stdint.h>

#include "client-shim/stub/entry_names.h"

namespace xschedd::shim::hip {

inline constexpr int kNoIndex = -1;

// clang-format off
enum Entry : uint32_t {
#define XS_ENTRY_POINTS "client-shim/hip/entry_points.def"
#define XS_EACH(name, ...) kEntry_##name,
#include "client-shim/stub/each_entry_point.inc"
  kEntryCount
};
// clang-format on

extern const EntryNames kEntryNames;
extern const int16_t kTableIndex[kEntryCount];

// The entry of that name, or kEntryCount.
uint32_t EntryByName(const char* name);

}  // namespace xschedd::shim::hip
