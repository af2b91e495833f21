#include "client-shim/hip/entry_points.h"

#include "client-shim/stub/entry_names.h"

namespace xschedd::shim::hip {

// clang-format off
const char* const kEntryNames[kEntryCount] = {
#define XS_ENTRY_POINTS "client-shim/hip/entry_points.def"
#define XS_EACH(name, ...) #name,
#include "client-shim/stub/each_entry_point.inc"
};

const int16_t kTableIndex[kEntryCount] = {
#define XS_ENTRY_POINTS "client-shim/hip/entry_points.def"
#define XS_EACH(name, index, ...) index,
#include "client-shim/stub/each_entry_point.inc"
};
// clang-format on

uint32_t EntryByName(const char* name) {
  return IndexOfName(kEntryNames, kEntryCount, name);
}

}  // namespace xschedd::shim::hip
