#include "client-shim/stub/elf_objects.h"

#include <elf.h>
#include <link.h>
#include <string.h>

namespace xschedd::shim {
namespace {

struct Search {
  const char* prefix = nullptr;
  uintptr_t address = 0;
  ElfObject found;
  char* path = nullptr;
  unsigned long path_size = 0;
  ElfObject* all = nullptr;  // not null: collects every match, until there is no room
  unsigned room = 0;
  unsigned count = 0;
};

// No string functions of the C library on this path: a sanitizer looks up its interceptors by dlsym, which is ours, and
// until it has finished, its strcmp jumps to address 0.
const char* Basename(const char* path) {
  const char* name = path;
  for (const char* c = path; *c != '\0'; ++c) {
    if (*c == '/') name = c + 1;
  }
  return name;
}
bool StartsWith(const char* text, const char* prefix) {
  while (*prefix != '\0' && *text == *prefix)
    ++text, ++prefix;
  return *prefix == '\0';
}
bool IsEqual(const char* a, const char* b) {
  while (*a != '\0' && *a == *b)
    ++a, ++b;
  return *a == *b;
}

ElfObject Describe(const dl_phdr_info* info) {
  ElfObject object;
  object.base = info->dlpi_addr;
  object.first = UINTPTR_MAX;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_DYNAMIC) object.dynamic = start;
    if (segment.p_type == PT_LOAD) {
      if (start < object.first) object.first = start;
      if (start + segment.p_memsz > object.end) object.end = start + segment.p_memsz;
    }
  }
  return object;
}

int Visit(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  if (search->prefix != nullptr && !HasFileName(info->dlpi_name, search->prefix)) return 0;
  const ElfObject object = Describe(info);
  if (search->prefix == nullptr && !object.Covers(reinterpret_cast<const void*>(search->address))) return 0;
  if (search->all != nullptr) {
    if (search->count < search->room) search->all[search->count++] = object;
    return 0;
  }
  search->found = object;
  if (search->path != nullptr && search->path_size > 0) {
    strncpy(search->path, info->dlpi_name, search->path_size - 1);
    search->path[search->path_size - 1] = '\0';
  }
  return 1;
}

// When glibc maps an object, it relocates these pointers in place, except for the vDSO's.
uintptr_t Pointer(const ElfObject& object, uintptr_t value) {
  return value < object.base ? object.base + value : value;
}

uint32_t GnuHash(const char* name) {
  uint32_t hash = 5381;
  for (const char* c = name; *c != '\0'; ++c)
    hash = hash * 33 + static_cast<unsigned char>(*c);
  return hash;
}

constexpr uint16_t kHiddenVersion = 0x8000;  // not the default version of its name (the "@" of nm, against "@@")

// The tables in the dynamic section of an object; null: it has none.
struct Dynamic {
  explicit Dynamic(const ElfObject& object) {
    for (auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dynamic); entry->d_tag != DT_NULL; ++entry) {
      const uintptr_t pointer = Pointer(object, entry->d_un.d_ptr);
      switch (entry->d_tag) {
        case DT_SYMTAB:
          symbols = reinterpret_cast<const ElfW(Sym)*>(pointer);
          break;
        case DT_STRTAB:
          strings = reinterpret_cast<const char*>(pointer);
          break;
        case DT_GNU_HASH:
          hash = reinterpret_cast<const uint32_t*>(pointer);
          break;
        case DT_VERSYM:
          versions = reinterpret_cast<const uint16_t*>(pointer);
          break;
        case DT_RELA:
          relocations = reinterpret_cast<const ElfW(Rela)*>(pointer);
          break;
        case DT_RELASZ:
          relocations_size = entry->d_un.d_val;
          break;
        case DT_JMPREL:
          plt_relocations = reinterpret_cast<const ElfW(Rela)*>(pointer);
          break;
        case DT_PLTRELSZ:
          plt_relocations_size = entry->d_un.d_val;
          break;
        default:
          break;
      }
    }
  }

  bool IsDefaultVersion(uint32_t index) const { return versions == nullptr || (versions[index] & kHiddenVersion) == 0; }

  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const uint32_t* hash = nullptr;
  const uint16_t* versions = nullptr;
  const ElfW(Rela) * relocations = nullptr;
  uint64_t relocations_size = 0;
  const ElfW(Rela) * plt_relocations = nullptr;
  uint64_t plt_relocations_size = 0;
};

}  // namespace

bool HasFileName(const char* path, const char* prefix) {
  return StartsWith(Basename(path), prefix);
}

ElfObject FindObjectByName(const char* prefix) {
  Search search;
  search.prefix = prefix;
  dl_iterate_phdr(Visit, &search);
  return search.found;
}

ElfObject FindObjectByAddress(const void* address, char* path, unsigned long size) {
  Search search;
  search.address = reinterpret_cast<uintptr_t>(address);
  search.path = path;
  search.path_size = size;
  dl_iterate_phdr(Visit, &search);
  return search.found;
}

unsigned FindObjectsByName(const char* prefix, ElfObject* out, unsigned room) {
  Search search;
  search.prefix = prefix;
  search.all = out;
  search.room = room;
  dl_iterate_phdr(Visit, &search);
  return search.count;
}

uint64_t LoaderGeneration() {
  uint64_t generation = 0;
  const auto first = [](dl_phdr_info* info, size_t, void* data) {
    *static_cast<uint64_t*>(data) = info->dlpi_adds + info->dlpi_subs;
    return 1;
  };
  dl_iterate_phdr(first, &generation);
  return generation;
}

void* FindSymbol(const ElfObject& object, const char* name) {
  if (!object.IsFound()) return nullptr;
  const Dynamic tables(object);
  if (tables.symbols == nullptr || tables.strings == nullptr || tables.hash == nullptr) return nullptr;

  // DT_GNU_HASH: number of buckets, first symbol, words of the Bloom filter, shift; filter; buckets; one hash per
  // symbol, whose lowest bit ends a bucket's chain. The filter, which only saves time, is not used.
  const uint32_t bucket_count = tables.hash[0];
  const uint32_t first_symbol = tables.hash[1];
  const uint32_t filter_words = tables.hash[2];
  if (bucket_count == 0) return nullptr;
  const uint32_t* buckets = tables.hash + 4 + filter_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* hashes = buckets + bucket_count;
  const uint32_t hash = GnuHash(name);
  uint32_t index = buckets[hash % bucket_count];
  if (index < first_symbol) return nullptr;
  for (;; ++index) {
    const uint32_t candidate = hashes[index - first_symbol];
    if ((candidate | 1) == (hash | 1)) {
      const ElfW(Sym)& symbol = tables.symbols[index];
      if (symbol.st_shndx != SHN_UNDEF && tables.IsDefaultVersion(index) &&
          IsEqual(tables.strings + symbol.st_name, name)) {
        return reinterpret_cast<void*>(object.base + symbol.st_value);
      }
    }
    if ((candidate & 1) != 0) return nullptr;
  }
}

int BoundTo(const ElfObject& object, const ElfObject* candidates, unsigned count) {
  if (!object.IsFound()) return -1;
  const Dynamic tables(object);
  const auto search = [&](const ElfW(Rela) * relocations, uint64_t size) {
    if (relocations == nullptr) return -1;
    for (uint64_t i = 0; i < size / sizeof(ElfW(Rela)); ++i) {
      const auto type = ELF64_R_TYPE(relocations[i].r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
      const auto* slot = reinterpret_cast<void* const*>(object.base + relocations[i].r_offset);
      // relaxed: the loader writes a slot once, when the function is first called.
      const void* bound = __atomic_load_n(slot, __ATOMIC_RELAXED);
      for (unsigned candidate = 0; candidate < count; ++candidate) {
        if (candidates[candidate].Covers(bound)) return static_cast<int>(candidate);
      }
    }
    return -1;
  };
  const int found = search(tables.plt_relocations, tables.plt_relocations_size);
  return found >= 0 ? found : search(tables.relocations, tables.relocations_size);
}

}  // namespace xschedd::shim
