// CUDA's wrappers: one for each entry point of entry_points.def, exported under the driver's own name.
// stub/wrapper_families.h has what they do; this file has what is different about CUDA: contexts, and calls that are
// about another context than the current one. Thread rule: any thread.
#include "client-shim/cuda/allocations.h"
#include "client-shim/cuda/driver.h"
#include "client-shim/cuda/kernel_of.h"
#include "client-shim/cuda/launch_key.h"
#include "client-shim/cuda/primary_contexts.h"
#include "client-shim/cuda/vendor.h"
#include "client-shim/stub/wrapper_families.h"

namespace xschedd::shim::cuda {
namespace {

struct Way {
  static constexpr FrontEnd* kFrontEnd = &g_front_end;

  [[gnu::always_inline]] static bool IsOpen() { return shim::IsOpen(g_summary); }
  template <typename Function>
  [[gnu::always_inline]] static Function Real(uint32_t entry) {
    return cuda::Real<Function>(entry);
  }
  template <typename Function>
  static Function RealFor(uint32_t entry, const void*) {
    return Real<Function>(entry);
  }
  static void Resolve(const void*) { ResolveDriver(); }
  static bool IsOurs(const void*) { return g_depth == 0; }
  // A process has one driver.
  static void DetectOtherRuntimes() {}

  // The driver has no launches with events.
  template <uint32_t entry, typename... Arguments>
  static constexpr bool MayTime(Arguments...) {
    return false;
  }
  template <uint32_t entry, typename... Arguments>
  static Result Timed(Event, Arguments...) {
    return kErrorNotSupported;
  }
  struct TakenEvents {
    template <typename... Arguments>
    explicit TakenEvents(const ClientTable*, Arguments...) {}
    void Recorded(const ClientTable*, Stream) const {}
  };

  using OnBehalfOf = cuda::OnBehalfOf;
  static int DeviceCount() { return cuda::DeviceCount(); }
  static PastHandles& PastEvents() { return g_past_events; }
  static MadePools& Pools() { return g_made_pools; }
  static const void* MemoryOwner() { return CurrentContext(); }
  // The driver keeps no last error.
  static Result OutOfMemory(bool) { return kErrorOutOfMemory; }
};

#define XS_PRIMARY_RETAIN(name, since, params, args, device, context) \
  XS_WRAPPER(Behind, Retaining, name, params,                         \
             XS_FACT(int, DeviceOf, params, args, device) XS_FACT(Handle, ContextOf, params, args, context))
#define XS_PRIMARY_RELEASE(name, since, params, args, device) \
  XS_WRAPPER(Around, Releasing, name, params, XS_FACT(int, DeviceOf, params, args, device))

}  // namespace
}  // namespace xschedd::shim::cuda

#define XS_VENDOR cuda
#define XS_SYMBOL_WAY Way
#define XS_LIST "client-shim/cuda/entry_points.def"
#include "client-shim/stub/define_wrappers.inc"

// clang-format off
void* const xschedd::shim::cuda::kWrappers[kEntryCount] = {
#define XS_ENTRY_POINTS XS_LIST
#define XS_EACH(name, ...) reinterpret_cast<void*>(&::name),
#include "client-shim/stub/each_entry_point.inc"
};
// clang-format on
