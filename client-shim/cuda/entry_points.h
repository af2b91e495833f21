// Numbers, names and versions of the entry points in entry_points.def.
// Thread rule: constants.
#pragma once

#include <stdint.h>

#include "client-shim/stub/entry_names.h"

namespace xschedd::shim::cuda {

// clang-format off
enum Entry : uint32_t {
#define XS_ENTRY_POINTS "client-shim/cuda/entry_points.def"
#define XS_EACH(name, ...) kEntry_##name,
#include "client-shim/stub/each_entry_point.inc"
  kEntryCount
};
// clang-format on

// The CUDA version that entry_points.def was written from.
inline constexpr int kNewestKnown = 13000;

extern const EntryNames kEntryNames;

// The entry exported as `name`, or kEntryCount.
uint32_t EntryByName(const char* name);

// The entry that cuGetProcAddress means by a plain name, a CUDA version (1000 * major + 10 * minor) and the flag for
// per-thread default streams. kEntryCount: there is none, or the version is newer than this list, so that the
// parameters are unknown.
uint32_t EntryByVersion(const char* name, int version, bool per_thread);

}  // namespace xschedd::shim::cuda
