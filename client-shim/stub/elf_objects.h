// A reader of the objects that the dynamic loader has mapped: find one by file name or address, and a symbol in it.
// The stub needs it because it defines `dlsym` itself, and because the real HIP runtime may have been loaded locally,
// where RTLD_NEXT does not see it.
// Thread rule: any thread; takes the loader's lock (dl_iterate_phdr) while it walks the list of objects.
#pragma once

#include <stdint.h>

namespace xschedd::shim {

// An object as the loader has it. Valid while the object stays loaded.
struct ElfObject {
  uintptr_t base = 0;
  uintptr_t dynamic = 0;  // address of its dynamic section
  uintptr_t first = 0;    // addresses that its segments cover: [first, end)
  uintptr_t end = 0;
  bool IsFound() const { return dynamic != 0; }
  bool Covers(const void* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    return at >= first && at < end;
  }
};

// The first object, in load order, whose file name (without folder) begins with `prefix`.
ElfObject FindObjectByName(const char* prefix);
// All of them, in load order, as far as there is room; returns how many were written.
unsigned FindObjectsByName(const char* prefix, ElfObject* out, unsigned room);
// The object that `address` lies in; its path as the loader knows it goes to `path` if that is not null.
ElfObject FindObjectByAddress(const void* address, char* path = nullptr, unsigned long size = 0);

// How often an object was loaded or unloaded so far: while it stays the same, so does what the functions here find.
uint64_t LoaderGeneration();

// The address of the function or variable `name` that `object` defines, in its default version; null if none.
void* FindSymbol(const ElfObject& object, const char* name);

// Which of `candidates` the functions and variables that `object` imports were bound to; -1: none of them so far. The
// first import that says so counts.
int BoundTo(const ElfObject& object, const ElfObject* candidates, unsigned count);

}  // namespace xschedd::shim
