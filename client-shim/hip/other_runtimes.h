// Several HIP runtimes in one process: a wheel's own libamdhip64 beside the system's, each loaded with RTLD_LOCAL.
//
// Our symbols get the calls that are meant for any of them. A call belongs to the runtime that the caller's other
// imports are bound to, because functions that we do not define are bound to it directly. So once a second runtime is
// detected, every call by symbol takes the slow path, which looks up where its caller belongs. Calls of the scheduled
// runtime continue as before; the others go to their own runtime, unscheduled, and one message says so.
//
// A second runtime is detected when the first code object is registered with it, or when a program makes a stream or a
// device current. One that is loaded after the first GPU work of the process, and has neither, is not detected.
// Thread rule: any thread.
#pragma once

#include <atomic>

#include "client-shim/stub/elf_objects.h"

namespace xschedd::shim::hip {

// The runtimes of this process by file name: libamdhip64.so.6, libamdhip64-1a2b3c.so.
inline constexpr char kRuntimePrefix[] = "libamdhip64";
inline constexpr unsigned kMaxRuntimes = 8;

// Whether more than one runtime was ever detected. relaxed: only slow paths read it, and a thread that calls another
// runtime has detected that itself.
extern std::atomic<bool> g_has_others;
inline bool HasOthers() {
  return g_has_others.load(std::memory_order_relaxed);
}

// Checks whether there is more than one now. Cheap if nothing was loaded since the last check.
void DetectOtherRuntimes();

// The runtime that the code at `caller` is bound to, or the only one. Not found: unknown.
ElfObject RuntimeOf(const void* caller);

// The function `name` of the runtime that the code at `caller` is bound to, if that is not `scheduled`; else null.
// Calls ReportSecondRuntime.
void* OtherRuntimesFunction(const void* caller, const char* name, const ElfObject& scheduled);

// Says once that the process has a second runtime, which is not scheduled.
void ReportSecondRuntime();

// The next definition of `name` behind ours in the program's scope, if it is not a runtime's: it belongs to another
// tool in front of the runtime, which the program's calls pass through. Null: there is none. `runtime`: the one most
// likely found; saves time.
void* NextDefinition(const char* name, const ElfObject& runtime = {});

}  // namespace xschedd::shim::hip
