// A third-party tool that is also preloaded: it counts launches and passes them on, as tracers do. At the end it prints
// the count to stderr. Thread rule: one thread launches.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>

namespace {

struct Dim3 {
  unsigned x, y, z;
};
using Launch = int (*)(const void*, Dim3, Dim3, void**, std::size_t, void*);

struct Count {
  unsigned seen = 0;
  ~Count() {
    if (seen != 0) std::fprintf(stderr, "tool: %u launches\n", seen);
  }
};
Count g_count;

}  // namespace

extern "C" __attribute__((visibility("default"))) int hipLaunchKernel(const void* function, Dim3 grid, Dim3 block,
                                                                      void** parameters, std::size_t shared,
                                                                      void* stream) {
  ++g_count.seen;
  const auto next = reinterpret_cast<Launch>(dlsym(RTLD_NEXT, "hipLaunchKernel"));
  return next(function, grid, block, parameters, shared, stream);
}
