#include "client-shim/hip/entry_points.h"

#include <string.h>

namespace xschedd::shim {

// clang-format off
#define XS_SUBMIT(name, index, params, args, stream) XS_ENTRY(name, index)
#define XS_GATE(name, index, params, args, stream) XS_ENTRY(name, index)
#define XS_COPY(name, index, params, args, proves) XS_ENTRY(name, index)
#define XS_MULTI(name, index, params, args, list, count) XS_ENTRY(name, index)
#define XS_SYNC(name, index, params, args, scope, object) XS_ENTRY(name, index)
#define XS_LOOK(name, index, params, args) XS_ENTRY(name, index)
#define XS_STREAM(name, index, params, args, out, priority, flags) XS_ENTRY(name, index)
#define XS_CUSTOM(name, index) XS_ENTRY(name, index)
#define XS_LISTED(name, index, why)

const char* const kEntryNames[kEntryCount] = {
#define XS_ENTRY(name, index) #name,
#include "client-shim/hip/entry_points.def"
#undef XS_ENTRY
};

const int16_t kTableIndex[kEntryCount] = {
#define XS_ENTRY(name, index) index,
#include "client-shim/hip/entry_points.def"
#undef XS_ENTRY
};
#include "client-shim/hip/entry_points_undef.inc"
// clang-format on

uint32_t EntryByName(const char* name) {
  for (uint32_t entry = 0; entry < kEntryCount; ++entry) {
    if (strcmp(kEntryNames[entry], name) == 0) return entry;
  }
  return kEntryCount;
}

}  // namespace xschedd::shim
