// The real HIP runtime behind the wrappers: which of the loaded ones it is, and where its functions are.
//
// One runtime of a process is scheduled: the first whose dispatch table is registered or whose functions are called.
// A second one (a wheel's own libamdhip64 beside the system's) runs unscheduled, and the user is told.
// Thread rule: any thread.
#pragma once

#include <atomic>

#include "client-shim/hip/entry_points.h"
#include "client-shim/hip/types.h"
#include "client-shim/stub/elf_objects.h"
#include "client-shim/stub/front_end.h"
#include "client-shim/stub/launch_path.h"

namespace xschedd::shim::hip {

// The ways in: by the symbol that the application was bound to, and by the runtime's own dispatch table. Where the
// table is ours, the symbols point at a word that is always zero.
enum Route : unsigned { kSymbols = 0, kTable = 1, kRoutes = 2 };

// By route: where the launch path looks (stub/launch_path.h).
extern std::atomic<const abi::Word*> g_summary[kRoutes];
// By route: the runtime's exports, and what was in its dispatch table before us. Never null once resolved: a function
// that the runtime lacks is one that returns hipErrorNotSupported.
extern std::atomic<void*> g_real[kRoutes][kEntryCount];
// By route: whether another tool stands between us and the runtime. It is to see the launches that the program makes,
// so none is made in another form (timed_launch.h).
extern std::atomic<bool> g_has_tool[kRoutes];
// By route: our wrappers.
extern void* const kWrappers[kRoutes][kEntryCount];

// Finds the runtime and its exports if that is not done yet: the one that `caller` is bound to. False: no libamdhip64
// is loaded. (The default is the caller of the function that this is called in.)
bool ResolveSymbols(const void* caller = __builtin_return_address(0));
// Makes sure that every way in is known before the client starts: exports, and the dispatch table if the runtime
// registers one (it does so on its first call, so one is made). False: no runtime.
bool PrepareRuntime();

// The function `name` of the runtime, or null. Only after ResolveSymbols.
void* RuntimeSymbol(const char* name);
// hipRuntimeGetVersion, as of PrepareRuntime.
int RuntimeVersion();
// Whether our wrappers are in the runtime's dispatch table.
bool IsTablePatched();
// What a request for the address of `symbol` is to be answered with in place of `found`, which is the runtime's answer.
void* WrapperOf(const char* symbol, void* found);
// Whether `address` is code of the scheduled runtime (or, while none is chosen, of any libamdhip64).
bool IsRuntimeCode(const void* address);

// The real function of `entry` where `caller` belongs to a runtime that is not the scheduled one; else null. Only where
// HasOthers (other_runtimes.h), after ResolveSymbols.
void* RealOfOther(const void* caller, uint32_t entry);

// Replaces the entries of a dispatch table (a size, then function pointers) by our wrappers.
void PatchTable(void* table);

extern FrontEnd g_front_end;

// The real function of `entry`; the type is the caller's to know.
template <Route route, typename Function>
[[gnu::always_inline]] inline Function Real(uint32_t entry) {
  // relaxed: written before the summary word that led here was published, or by ResolveSymbols in this thread.
  return reinterpret_cast<Function>(g_real[route][entry].load(std::memory_order_relaxed));
}

// Whether the runtime has `entry`.
bool IsAbsent(const void* real);
template <Route route>
bool HasReal(uint32_t entry) {
  const void* real = g_real[route][entry].load(std::memory_order_relaxed);
  return real != nullptr && !IsAbsent(real);
}

}  // namespace xschedd::shim::hip
