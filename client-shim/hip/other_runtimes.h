// Several HIP runtimes in one process: a wheel's own libamdhip64 beside the system's, each loaded locally.
//
// Our symbols stand for all of them, and so receive calls meant for any. The right one is the runtime that the caller's
// other imports are bound to, because functions that we do not define are bound to it directly. So once a second
// runtime is seen, no call by symbol takes the launch path: each looks up where its caller belongs. Calls of the
// scheduled runtime continue as before; the others go to their own runtime, unscheduled, and the user is told once.
//
// A second runtime is seen when the first code object is registered with it, or when a library makes a stream or a
// device current; what has neither, and comes after the first GPU work of the process, is not.
// Thread rule: any thread.
#pragma once

#include <atomic>

#include "client-shim/stub/elf_objects.h"

namespace xschedd::shim::hip {

// The runtimes of this process by file name: libamdhip64.so.6, libamdhip64-1a2b3c.so.
inline constexpr char kRuntimePrefix[] = "libamdhip64";
inline constexpr unsigned kMaxRuntimes = 8;

// Whether more than one runtime was ever seen. relaxed: only slow paths look, and a caller of another runtime has been
// seen by its own thread.
extern std::atomic<bool> g_has_others;
inline bool HasOthers() {
  return g_has_others.load(std::memory_order_relaxed);
}

// Looks whether there is more than one now. Cheap while nothing was loaded since the last look.
void LookForOthers();

// The runtime that the code at `caller` is bound to; the only one, if there is one; not found, if nothing says which.
ElfObject RuntimeOf(const void* caller);

// The function `name` of the runtime that the code at `caller` is bound to, where that is not `scheduled`; else null.
// Tells the user when it is the first.
void* OtherRuntimesFunction(const void* caller, const char* name, const ElfObject& scheduled);

// Tells the user, once.
void SayThereIsAnother();

// The definition of `name` that is next behind ours in the program's scope, where it is neither a runtime's nor ours:
// that of another tool that stands before the runtime, and that the program's calls pass. Null if there is none.
// `runtime` is the one that is most likely found.
void* NextDefinition(const char* name, const ElfObject& runtime = {});

}  // namespace xschedd::shim::hip
