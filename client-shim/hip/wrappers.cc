// HIP's wrappers. Each entry point of entry_points.def has one for callers of the symbol, exported under the runtime's
// own name without a version node, so that references to any version bind to it, and one for the runtime's dispatch
// table. stub/wrapper_families.h has what they do; this file has what is different about HIP: two routes, other
// runtimes beside the scheduled one, tools in front of it, and launches with events. Thread rule: any thread.
#include "client-shim/hip/allocations.h"
#include "client-shim/hip/kernel_of.h"
#include "client-shim/hip/launch_key.h"
#include "client-shim/hip/other_runtimes.h"
#include "client-shim/hip/runtime.h"
#include "client-shim/hip/timed_launch.h"
#include "client-shim/hip/vendor.h"
#include "client-shim/stub/wrapper_families.h"

namespace xschedd::shim::hip {
namespace {

template <Route route>
struct Way {
  static constexpr FrontEnd* kFrontEnd = &g_front_end;

  [[gnu::always_inline]] static bool IsOpen() { return shim::IsOpen(g_summary[route]); }
  template <typename Function>
  [[gnu::always_inline]] static Function Real(uint32_t entry) {
    return hip::Real<route, Function>(entry);
  }
  template <typename Function>
  static Function RealFor(uint32_t entry, const void* caller) {
    if (route == kSymbols && HasOthers()) {
      if (void* other = RealOfOther(caller, entry)) return reinterpret_cast<Function>(other);
    }
    return Real<Function>(entry);
  }
  static void Resolve(const void* caller) {
    if (route == kSymbols) ResolveSymbols(caller);
  }
  static bool IsOurs(const void* caller) {
    if (g_depth != 0) return false;
    return route != kSymbols || !HasOthers() || RealOfOther(caller, kEntry_hipLaunchKernel) == nullptr;
  }
  static void DetectOtherRuntimes() {
    if (route == kSymbols) hip::DetectOtherRuntimes();
  }

  template <uint32_t entry, typename... Arguments>
  static bool MayTime(Arguments... arguments) {
    return !g_has_tool[route].load(std::memory_order_relaxed) && TimedLaunch<route, entry>::IsPossible(arguments...);
  }
  template <uint32_t entry, typename... Arguments>
  static Result Timed(Event stop, Arguments... arguments) {
    return TimedLaunch<route, entry>::Call(stop, arguments...);
  }
  // With the launch, the events no longer stand for what they stood for before.
  class TakenEvents {
   public:
    template <typename... Arguments>
    explicit TakenEvents(const ClientTable* client, Arguments... arguments) : events_(EventsOf(arguments...)) {
      if (events_.start != nullptr) client->event_destroyed(events_.start);
      if (events_.stop != nullptr) client->event_destroyed(events_.stop);
    }
    void Recorded(const ClientTable* client, Stream stream) const {
      if (events_.stop != nullptr && events_.is_in_order) client->event_recorded(events_.stop, stream);
    }

   private:
    const LaunchEvents events_;
  };

  // No wrapped call is about another device than the current one.
  struct OnBehalfOf {
    explicit OnBehalfOf(int) {}
  };
  static int DeviceCount() { return hip::DeviceCount(); }
  static PastHandles& PastEvents() { return g_past_events; }
  static MadePools& Pools() { return g_made_pools; }
  // All of it goes with its device.
  static const void* MemoryOwner() { return nullptr; }
  // A call that cannot succeed leaves the runtime's own error behind.
  static Result OutOfMemory(bool may_call) {
    constexpr size_t kMoreThanThereIs = ~size_t{0} >> 1;
    void* unused = nullptr;
    if (may_call) (void)Real<Result (*)(void**, size_t)>(kEntry_hipMalloc)(&unused, kMoreThanThereIs);
    return kErrorOutOfMemory;
  }
};

// After a call of the older context functions, which do not name the device.
int CurrentDevice() {
  static std::atomic<void*> known{nullptr};
  void* found = known.load(std::memory_order_relaxed);
  if (found == nullptr) {
    found = RuntimeSymbol("hipGetDevice");
    known.store(found, std::memory_order_relaxed);
  }
  const auto get_device = reinterpret_cast<Result (*)(int*)>(found);
  int device = -1;
  const Inside inside;
  return get_device != nullptr && get_device(&device) == kSuccess ? device : kUnknownDevice;
}

// The stream of this thread's last hipConfigureCall, for the hipLaunchByPtr that follows. A second configuration before
// that launch replaces the first one; the runtime stacks them.
__thread Stream g_configured_stream __attribute__((tls_model("initial-exec")));

struct Configuring : Family {
  template <typename Way, typename Row, typename... Arguments>
  static void After(Result, const void*, Arguments... arguments) {
    if (g_depth == 0) g_configured_stream = Row::StreamOf(arguments...);
  }
};

#define XS_CONFIGURE(name, index, params, args, stream) \
  XS_WRAPPER(Behind, Configuring, name, params, XS_FACT(Stream, StreamOf, params, args, stream))

}  // namespace
}  // namespace xschedd::shim::hip

#define XS_VENDOR hip
#define XS_SYMBOL_WAY Way<kSymbols>
#define XS_LIST "client-shim/hip/entry_points.def"
#include "client-shim/stub/define_wrappers.inc"

// clang-format off
void* const xschedd::shim::hip::kWrappers[kRoutes][kEntryCount] = {{
#define XS_ENTRY_POINTS XS_LIST
#define XS_EACH(name, ...) reinterpret_cast<void*>(&::name),
#include "client-shim/stub/each_entry_point.inc"
}, {
#define XS_ENTRY_POINTS XS_LIST
#define XS_EACH(name, ...) reinterpret_cast<void*>(&Wrap_##name<Way<kTable>>::Call),
#include "client-shim/stub/each_entry_point.inc"
}};
// clang-format on
