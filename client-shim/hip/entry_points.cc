#include "client-shim/hip/entry_points.h"

#include <string.h>

namespace xschedd::shim {

// clang-format off
const char* const kEntryNames[kEntryCount] = {
#define XS_EACH(name, index, params, args) #name,
#include "client-shim/hip/entry_points_each.inc"
#include "client-shim/hip/entry_points.def"
#include "client-shim/hip/entry_points_undef.inc"
#undef XS_EACH
};

const int16_t kTableIndex[kEntryCount] = {
#define XS_EACH(name, index, params, args) index,
#include "client-shim/hip/entry_points_each.inc"
#include "client-shim/hip/entry_points.def"
#include "client-shim/hip/entry_points_undef.inc"
#undef XS_EACH
};
// clang-format on

uint32_t EntryByName(const char* name) {
  for (uint32_t entry = 0; entry < kEntryCount; ++entry) {
    if (strcmp(kEntryNames[entry], name) == 0) return entry;
  }
  return kEntryCount;
}

}  // namespace xschedd::shim
