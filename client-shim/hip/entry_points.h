// Numbers, names and table positions of the entry points in entry_points.def.
// Thread rule: constants.
#pragma once

#include <stdint.h>

namespace xschedd::shim {

inline constexpr int kNoIndex = -1;

// clang-format off
#define XS_NUMBER(name) kEntry_##name,
enum Entry : uint32_t {
#define XS_SUBMIT(name, index, params, args, stream) XS_NUMBER(name)
#define XS_GATE(name, index, params, args, stream) XS_NUMBER(name)
#define XS_COPY(name, index, params, args, proves) XS_NUMBER(name)
#define XS_MULTI(name, index, params, args, list, count) XS_NUMBER(name)
#define XS_SYNC(name, index, params, args, scope, object) XS_NUMBER(name)
#define XS_LOOK(name, index, params, args) XS_NUMBER(name)
#define XS_STREAM(name, index, params, args, out, priority, flags) XS_NUMBER(name)
#define XS_CUSTOM(name, index) XS_NUMBER(name)
#define XS_LISTED(name, index, why)
#include "client-shim/hip/entry_points.def"
#include "client-shim/hip/entry_points_undef.inc"
  kEntryCount
};
#undef XS_NUMBER
// clang-format on

extern const char* const kEntryNames[kEntryCount];
extern const int16_t kTableIndex[kEntryCount];

// The entry called `name`, or kEntryCount.
uint32_t EntryByName(const char* name);

}  // namespace xschedd::shim
