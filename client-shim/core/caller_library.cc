#include "client-shim/core/caller_library.h"

#include <link.h>

namespace xschedd::shim {
namespace {

struct Search {
  std::uintptr_t address;
  std::uintptr_t first, end;
  const char* path;
};

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

std::string CallerLibraries::PathOf(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  for (const Range& range : ranges_) {
    if (at >= range.first && at < range.end) return range.path;
  }
  Search search{at, 0, 0, nullptr};
  if (dl_iterate_phdr(Visit, &search) == 0) return {};
  ranges_.push_back({search.first, search.end, search.path});
  return ranges_.back().path;
}

}  // namespace xschedd::shim
