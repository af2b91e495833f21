#include "common/entry_point_names.h"

namespace xschedd {

// The wrappers are generated from the same lists; nothing else of the shim is included here.
// clang-format off
std::span<const EntryPointName> EntryPointNames() {
  static constexpr EntryPointName kNames[] = {
#define XS_ENTRY_POINTS "client-shim/hip/entry_points.def"
#define XS_EACH(name, ...) {#name, false},
#define XS_EACH_GATED(name, ...) {#name, true},
#include "client-shim/stub/each_entry_point.inc"
#define XS_ENTRY_POINTS "client-shim/cuda/entry_points.def"
#define XS_EACH(name, ...) {#name, false},
#define XS_EACH_GATED(name, ...) {#name, true},
#include "client-shim/stub/each_entry_point.inc"
  };
  return kNames;
}

bool IsLeftAlone(std::string_view name) {
  // The list's names, separated by commas and spaces, with a comma after the last.
  static constexpr std::string_view kNames = ""
#define XS_ENTRY_POINTS "client-shim/hip/entry_points.def"
#define XS_EACH(...)
#define XS_EACH_LEFT_ALONE(why, ...) ", " #__VA_ARGS__
#include "client-shim/stub/each_entry_point.inc"
  ",";
  // clang-format on
  for (std::size_t at = kNames.find(name); at != std::string_view::npos; at = kNames.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if (at > 0 && kNames[at - 1] == ' ' && end < kNames.size() && kNames[end] == ',') return true;
  }
  return false;
}

}  // namespace xschedd
