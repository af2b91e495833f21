// Reads the objects that the dynamic loader has mapped: finds one by file name or address, and a symbol in it. The stub
// needs this because it defines `dlsym` itself, and because the real HIP runtime may have been loaded with RTLD_LOCAL,
// where RTLD_NEXT does not see it.
// Thread rule: any thread; takes the loader's lock while it walks the list of objects (dl_iterate_phdr).
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

// The first object, in load order, whose file name (without its folder) begins with `prefix`.
ElfObject FindObjectByName(const char* prefix);
// Whether the file name of `path` (without its folder) begins with `prefix`.
bool HasFileName(const char* path, const char* prefix);
// All such objects, in load order, as far as there is room. Returns how many were written.
unsigned FindObjectsByName(const char* prefix, ElfObject* out, unsigned room);
// The object that contains `address`. Its path, as the loader knows it, is written to `path` if that is not null.
ElfObject FindObjectByAddress(const void* address, char* path = nullptr, unsigned long size = 0);

// How often objects were loaded or unloaded so far. While it does not change, the functions here return the same.
uint64_t LoaderGeneration();

// The address of the function or variable `name` that `object` defines, in its default version; null if none.
void* FindSymbol(const ElfObject& object, const char* name);

// The index of the candidate that `object` is bound to, by the first of its imports that is bound to one; -1: none so
// far.
int BoundTo(const ElfObject& object, const ElfObject* candidates, unsigned count);

}  // namespace xschedd::shim
