#include "client-shim/cuda/entry_points.h"

#include <stddef.h>
#include <string.h>

namespace xschedd::shim::cuda {
namespace {

// clang-format off
const int16_t kSince[kEntryCount] = {
#define XS_ENTRY_POINTS "client-shim/cuda/entry_points.def"
#define XS_EACH(name, since, ...) since,
#include "client-shim/stub/each_entry_point.inc"
};
// clang-format on

// The length of an exported name without "_v2", "_ptsz" and "_ptds". `per_thread`: whether it has one of the last two.
size_t PlainLength(const char* name, bool* per_thread) {
  size_t length = strlen(name);
  *per_thread = length > 5 && (strcmp(name + length - 5, "_ptsz") == 0 || strcmp(name + length - 5, "_ptds") == 0);
  if (*per_thread) length -= 5;
  if (length > 3 && name[length - 3] == '_' && name[length - 2] == 'v') length -= 3;
  return length;
}

}  // namespace

// clang-format off
constexpr char kText[] =
#define XS_ENTRY_POINTS "client-shim/cuda/entry_points.def"
#define XS_EACH(name, ...) #name "\0"
#include "client-shim/stub/each_entry_point.inc"
    ;
constexpr auto kOffsets = OffsetsOf<kEntryCount>(kText);
const EntryNames kEntryNames = {kText, kOffsets.data(), kEntryCount};
// clang-format on

uint32_t EntryByName(const char* name) {
  return IndexOfName(kEntryNames, name);
}

uint32_t EntryByVersion(const char* name, int version, bool per_thread) {
  if (version > kNewestKnown) return kEntryCount;
  const size_t wanted = strlen(name);
  // A function without a stream has no per-thread form, so the ordinary one is returned for both.
  uint32_t best[2] = {kEntryCount, kEntryCount};
  for (uint32_t entry = 0; entry < kEntryCount; ++entry) {
    bool is_per_thread = false;
    if (PlainLength(kEntryNames[entry], &is_per_thread) != wanted || kSince[entry] > version) continue;
    if (strncmp(kEntryNames[entry], name, wanted) != 0) continue;
    uint32_t* slot = &best[is_per_thread ? 1 : 0];
    if (*slot == kEntryCount || kSince[*slot] < kSince[entry]) *slot = entry;
  }
  return per_thread && best[1] != kEntryCount ? best[1] : best[0];
}

}  // namespace xschedd::shim::cuda
