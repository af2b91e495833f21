// A tool on the runtime's dispatch table, as rocprofiler-sdk is one: librocprofiler-register gives it the table, and it
// puts counting functions before the launches. It counts into the file that E2E_TOOL_COUNT names, so that others can
// read it. Source of the interface: rocprofiler-register's own header. Thread rule: any thread may launch.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

using Counter = std::atomic<std::uint64_t>;
Counter* g_count = nullptr;

// A function of the table that launches, by its position in HipDispatchTable.
template <int position, typename... Arguments>
struct Launch {
  using Function = int (*)(Arguments...);
  static inline Function next = nullptr;
  static int Call(Arguments... arguments) {
    if (g_count != nullptr) ++*g_count;
    return next(arguments...);
  }
  static void Wrap(void* table) {
    auto* slot =
        reinterpret_cast<Function*>(static_cast<char*>(table) + sizeof(std::size_t) + position * sizeof(void*));
    next = *slot;
    *slot = &Call;
  }
};

struct Dim3 {
  unsigned x, y, z;
};
using Kernel = Launch<214, const void*, Dim3, Dim3, void**, std::size_t, void*>;
using ExtKernel = Launch<84, const void*, Dim3, Dim3, void**, std::size_t, void*, void*, void*, int>;
using Module =
    Launch<308, void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**>;
using ExtModule = Launch<388, void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, std::size_t, void*,
                         void**, void**, void*, void*, unsigned>;

Counter* OpenCount() {
  const char* path = std::getenv("E2E_TOOL_COUNT");
  const int file = path != nullptr ? ::open(path, O_RDWR | O_CREAT, 0600) : -1;
  if (file < 0) return nullptr;
  void* mapped = MAP_FAILED;
  if (::ftruncate(file, sizeof(Counter)) == 0) {
    mapped = ::mmap(nullptr, sizeof(Counter), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  ::close(file);
  return mapped != MAP_FAILED ? static_cast<Counter*>(mapped) : nullptr;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int rocprofiler_set_api_table(const char* name, std::uint64_t, std::uint64_t,
                                                                     void** tables, std::uint64_t count) {
  if (std::strcmp(name, "hip") != 0 || count == 0 || Kernel::next != nullptr) return 0;
  g_count = OpenCount();
  Kernel::Wrap(tables[0]);
  ExtKernel::Wrap(tables[0]);
  Module::Wrap(tables[0]);
  ExtModule::Wrap(tables[0]);
  return 0;
}

// librocprofiler-register recognises a tool by this export.
__attribute__((visibility("default"))) void* rocprofiler_configure(std::uint32_t, const char*, std::uint32_t, void*) {
  return nullptr;
}
}
