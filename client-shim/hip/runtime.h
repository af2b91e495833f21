// The real HIP runtime behind the wrappers: which of the loaded ones it is, and where its functions are.
//
// One runtime of a process is scheduled: the first one whose dispatch table is registered or whose functions are
// called. A second one (a wheel's own libamdhip64 beside the system's) runs unscheduled, and one message says so.
// Thread rule: any thread.
#pragma once

#include <atomic>

#include "client-shim/hip/entry_points.h"
#include "client-shim/hip/types.h"
#include "client-shim/stub/elf_objects.h"
#include "client-shim/stub/front_end.h"
#include "client-shim/stub/launch_path.h"

namespace xschedd::shim::hip {

// The ways in: by the symbol that the application was bound to, and by the runtime's own dispatch table. Once the table
// is patched, the symbols' pointer leads to a word that is always zero.
enum Route : unsigned { kSymbols = 0, kTable = 1, kRoutes = 2 };

// By route: the word that the launch path reads (stub/launch_path.h).
extern std::atomic<const abi::Word*> g_summary[kRoutes];
// By route: the runtime's exports, and what was in its dispatch table before us. Never null once resolved: for a
// function that the runtime lacks, it is one that returns hipErrorNotSupported.
extern std::atomic<void*> g_real[kRoutes][kEntryCount];
// By route: whether another tool is between us and the runtime. It must see the launches as the program makes them, so
// none is made in another form (timed_launch.h).
extern std::atomic<bool> g_has_tool[kRoutes];
// By route: our wrappers.
extern void* const kWrappers[kRoutes][kEntryCount];

// Finds the runtime that `caller` is bound to, and its exports, if that is not done yet. False: no libamdhip64 is
// loaded. (The default is the caller of the function that this is called in.)
bool ResolveSymbols(const void* caller = __builtin_return_address(0));
// Finds every way in before the client starts: exports, and the dispatch table if the runtime registers one. It does so
// at its first call, so one is made here. False: no runtime.
bool PrepareRuntime();

// The function `name` of the runtime, or null. Only after ResolveSymbols.
void* RuntimeSymbol(const char* name);
// hipRuntimeGetVersion, as of PrepareRuntime.
int RuntimeVersion();
// Whether our wrappers are in the runtime's dispatch table.
bool IsTablePatched();
// The answer to a request for the address of `symbol`, where the runtime's answer is `found`.
void* WrapperOf(const char* symbol, void* found);
// Whether `address` is code of the scheduled runtime (or, while none is chosen, of any libamdhip64).
bool IsRuntimeCode(const void* address);

// The real function of `entry`, if `caller` belongs to another runtime than the scheduled one; else null. Only if
// HasOthers (other_runtimes.h), after ResolveSymbols.
void* RealOfOther(const void* caller, uint32_t entry);

// Replaces the entries of a dispatch table (a size, then function pointers) by our wrappers.
void PatchTable(void* table);

extern FrontEnd g_front_end;

// The real function of `entry`, whose type the caller must know.
template <Route route, typename Function>
[[gnu::always_inline]] inline Function Real(uint32_t entry) {
  // relaxed: written before the summary word that led here was published, or by ResolveSymbols in this thread.
  return reinterpret_cast<Function>(g_real[route][entry].load(std::memory_order_relaxed));
}

// Whether `real`, from g_real, stands for a function that the runtime lacks.
bool IsAbsent(const void* real);
// Whether the runtime has `entry`.
template <Route route>
bool HasReal(uint32_t entry) {
  const void* real = g_real[route][entry].load(std::memory_order_relaxed);
  return real != nullptr && !IsAbsent(real);
}

}  // namespace xschedd::shim::hip
