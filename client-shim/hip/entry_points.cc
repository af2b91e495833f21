#include "client-shim/hip/entry_points.h"

namespace xschedd::shim::hip {

// clang-format off
constexpr char kText[] =
#define XS_ENTRY_POINTS "client-shim/hip/entry_points.def"
#define XS_EACH(name, ...) #name "\0"
#include "client-shim/stub/each_entry_point.inc"
    ;
constexpr auto kOffsets = OffsetsOf<kEntryCount>(kText);
const EntryNames kEntryNames = {kText, kOffsets.data(), kEntryCount};

const int16_t kTableIndex[kEntryCount] = {
#define XS_ENTRY_POINTS "client-shim/hip/entry_points.def"
#define XS_EACH(name, index, ...) index,
#include "client-shim/stub/each_entry_point.inc"
};
// clang-format on

uint32_t EntryByName(const char* name) {
  return IndexOfName(kEntryNames, name);
}

}  // namespace xschedd::shim::hip
