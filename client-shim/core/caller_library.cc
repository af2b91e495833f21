#include "client-shim/core/caller_library.h"

#include <link.h>

namespace xschedd::shim {
namespace {

struct Search {
  std::uintptr_t address;
  std::uintptr_t first, end;
  const char* path;
};

int VisitOne(dl_phdr_info* info, std::size_t, void* data) {
  *static_cast<unsigned long long*>(data) = info->dlpi_subs;
  return 1;
}

int Visit(dl_phdr_info* info, std::size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const std::uintptr_t first = info->dlpi_addr + segment.p_vaddr;
    if (search->address >= first && search->address < first + segment.p_memsz) {
      search->first = first;
      search->end = first + segment.p_memsz;
      search->path = info->dlpi_name;
      return 1;
    }
  }
  return 0;
}

}  // namespace

const char* CallerLibraries::NameOf(const struct link_map* object) {
  return object->l_name;
}

const char* CallerLibraries::Walk(const void* address) {
  // The caller's object cannot be unloaded during its own call, so a range that is found after this check is valid.
  unsigned long long unloaded = 0;
  ::dl_iterate_phdr(VisitOne, &unloaded);
  if (unloaded != unloaded_) {
    ranges_.clear();
    unloaded_ = unloaded;
  }
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const Range& range : ranges_) {
    if (at >= range.first && at < range.end) return range.path.c_str();
  }
  Search search{at, 0, 0, nullptr};
  if (::dl_iterate_phdr(Visit, &search) == 0) return "";
  return ranges_.emplace_back(Range{search.first, search.end, search.path}).path.c_str();
}

}  // namespace xschedd::shim
