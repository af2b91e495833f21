// Route 1: the runtime's dispatch table. From ROCm 6.2, libamdhip64 as AMD builds it passes its table to
// rocprofiler_register_library_api_table, an unversioned C symbol of librocprofiler-register. This definition precedes
// it. The real one is called first, so that a profiler's wrappers are inside our gate and its spans do not contain our
// waiting. Then our wrappers go into the table.
// Source: clr hipamd/src/hip_api_trace.cpp (ToolInit), rocprofiler-register/source/lib/rocprofiler-register.
// Thread rule: called by the runtime, once a table, under its own initialisation guard.
#include <errno.h>
#include <string.h>

#include "client-shim/hip/other_runtimes.h"
#include "client-shim/hip/runtime.h"
#include "client-shim/stub/client.h"

namespace xschedd::shim::hip {
namespace {
using RegisterFunction = int (*)(const char* name, void* import, uint32_t version, void** tables, uint64_t count,
                                 void* identifier);
constexpr int kRegistered = 0;  // ROCP_REG_SUCCESS
}  // namespace
}  // namespace xschedd::shim::hip

extern "C" __attribute__((visibility("default"))) int rocprofiler_register_library_api_table(
    const char* name, void* import, uint32_t version, void** tables, uint64_t count, void* identifier) {
  using namespace xschedd::shim;
  using namespace xschedd::shim::hip;
  const int saved_errno = errno;
  constexpr char kName[] = "rocprofiler_register_library_api_table";
  // The definition behind ours, which may be another tool's. There is none if HIP was loaded with RTLD_LOCAL.
  void* next = NextDefinition(kName);
  if (next == nullptr) next = FindSymbol(FindObjectByName("librocprofiler-register.so"), kName);
  const auto real = reinterpret_cast<RegisterFunction>(next);
  const int result = real != nullptr ? real(name, import, version, tables, count, identifier) : kRegistered;
  const bool is_hip = name != nullptr && strcmp(name, "hip") == 0 && tables != nullptr && count > 0;
  if (is_hip && tables[0] != nullptr && !IsDisabled()) PatchTable(tables[0]);
  errno = saved_errno;
  return result;
}
