#include "common/entry_point_names.h"

namespace xschedd {

// The lists are those that the wrappers are made from; nothing else of the shim is seen here. A kind that is not named
// below submits nothing.
// clang-format off
std::span<const EntryPointName> EntryPointNames() {
  static constexpr EntryPointName kNames[] = {
#define XS_EACH(name, ...) {#name, false},
#include "client-shim/hip/entry_points_each.inc"
#undef XS_SUBMIT
#undef XS_COPY
#undef XS_READ
#undef XS_MULTI
#define XS_SUBMIT(name, ...) {#name, true},
#define XS_COPY(name, ...) {#name, true},
#define XS_READ(name, ...) {#name, true},
#define XS_MULTI(name, ...) {#name, true},
#include "client-shim/hip/entry_points.def"
#include "client-shim/hip/entry_points_undef.inc"
#include "client-shim/cuda/entry_points_each.inc"
#undef XS_SUBMIT
#undef XS_COPY
#undef XS_READ
#undef XS_MULTI
#define XS_SUBMIT(name, ...) {#name, true},
#define XS_COPY(name, ...) {#name, true},
#define XS_READ(name, ...) {#name, true},
#define XS_MULTI(name, ...) {#name, true},
#include "client-shim/cuda/entry_points.def"
#include "client-shim/cuda/entry_points_undef.inc"
#undef XS_EACH
  };
  return kNames;
}

bool IsLeftAlone(std::string_view name) {
  // Names separated by commas and spaces, as the list has them, and one comma behind the last.
  static constexpr std::string_view kNames = ""
#define XS_EACH(...)
#include "client-shim/hip/entry_points_each.inc"
#undef XS_LISTED
#undef XS_OTHER
#define XS_LISTED(why, ...) ", " #__VA_ARGS__
#define XS_OTHER(why, ...) ", " #__VA_ARGS__
#include "client-shim/hip/entry_points.def"
#include "client-shim/hip/entry_points_undef.inc"
#undef XS_EACH
  ",";
  // clang-format on
  for (std::size_t at = kNames.find(name); at != std::string_view::npos; at = kNames.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if (at > 0 && kNames[at - 1] == ' ' && end < kNames.size() && kNames[end] == ',') return true;
  }
  return false;
}

}  // namespace xschedd
