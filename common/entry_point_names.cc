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
#undef XS_GATE
#undef XS_COPY
#undef XS_MULTI
#define XS_SUBMIT(name, ...) {#name, true},
#define XS_GATE(name, ...) {#name, true},
#define XS_COPY(name, ...) {#name, true},
#define XS_MULTI(name, ...) {#name, true},
#include "client-shim/hip/entry_points.def"
#include "client-shim/hip/entry_points_undef.inc"
#include "client-shim/cuda/entry_points_each.inc"
#undef XS_SUBMIT
#undef XS_GATE
#undef XS_COPY
#undef XS_MULTI
#define XS_SUBMIT(name, ...) {#name, true},
#define XS_GATE(name, ...) {#name, true},
#define XS_COPY(name, ...) {#name, true},
#define XS_MULTI(name, ...) {#name, true},
#include "client-shim/cuda/entry_points.def"
#include "client-shim/cuda/entry_points_undef.inc"
#undef XS_EACH
  };
  return kNames;
}
// clang-format on

}  // namespace xschedd
