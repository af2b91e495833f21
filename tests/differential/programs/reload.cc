// HIP by dlopen, and closed again: the runtime itself, unused, used and with work in flight, and a library that links
// it and has kernels of its own, which come to lie at the same addresses when it is opened again.
//
// Not with HIP 5.7: Debian 13's cannot be loaded again once it was closed, because LLVM then finds its options twice
//
// The program is not linked with HIP. What transcript.h asks of it is looked up in the runtime that is open.
#include <dlfcn.h>

#include <climits>
#include <cstring>
#include <string>

#include "tests/differential/transcript.h"

using differential::Lane;
using differential::Run;
using differential::Value;

namespace {

void* g_runtime = nullptr;

template <typename Function>
Function Find(void* library, const char* name) {
  void* address = dlsym(library, name);
  if (address == nullptr) {
    std::fprintf(stderr, "%s: %s\n", name, dlerror());
    std::_Exit(94);
  }
  Function function;
  std::memcpy(&function, &address, sizeof function);
  return function;
}
#define HIP(name) Find<decltype(&::name)>(g_runtime, #name)

void* OpenRuntime() {
  for (const char* name : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  std::fprintf(stderr, "no libamdhip64: %s\n", dlerror());
  std::_Exit(93);
}

std::string Beside(const char* name) {
  char path[PATH_MAX] = "";
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  const std::string whole(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  return whole.substr(0, whole.rfind('/') + 1) + name;
}

// Launches a module's kernel on a stream and on the default stream; `waits`: for all of it, else it is left in flight.
void Use(Lane& lane, bool waits) {
  constexpr std::uint32_t kCount = 64;
  Value host[kCount] = {};
  void *y = nullptr, *x = nullptr;
  hipStream_t stream = nullptr;
  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  const auto allocate = Find<hipError_t (*)(void**, std::size_t)>(g_runtime, "hipMalloc");  // overloaded in the header
  CALL(lane, allocate(&y, sizeof host));
  CALL(lane, allocate(&x, sizeof host));
  CALL(lane, HIP(hipMemset)(y, 1, sizeof host));
  CALL(lane, HIP(hipMemset)(x, 2, sizeof host));
  CALL(lane, HIP(hipDeviceSynchronize)());
  CALL(lane, HIP(hipStreamCreate)(&stream));
  CALL(lane, HIP(hipModuleLoad)(&module, Beside("module_a.co").c_str()));
  CALL(lane, HIP(hipModuleGetFunction)(&function, module, "scale_add"));
  for (Value step = 0; step < 6; ++step) {
    std::uint32_t count = kCount;
    std::uint64_t micros = 500;
    void* arguments[] = {&y, &x, &step, &count, &micros};
    CALL(lane, HIP(hipModuleLaunchKernel)(function, 1, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr));
  }
  if (!waits) return;
  CALL(lane, HIP(hipStreamSynchronize)(stream));
  CALL(lane, HIP(hipMemcpy)(host, y, sizeof host, hipMemcpyDeviceToHost));
  lane.Data("values", host, sizeof host);
  CALL(lane, HIP(hipStreamDestroy)(stream));
  CALL(lane, HIP(hipModuleUnload)(module));
}

}  // namespace

// transcript.h's own calls.
extern "C" const char* hipGetErrorName(hipError_t error) {
  return HIP(hipGetErrorName)(error);
}
extern "C" hipError_t hipPeekAtLastError() {
  return HIP(hipPeekAtLastError)();
}
extern "C" hipError_t hipGetLastError() {
  return HIP(hipGetLastError)();
}

int main(int argc, char** argv) {
  Run run(argc, argv);
  Lane& lane = run.main;
  // Opened and closed, and nothing asked of it.
  CHECK(lane, dlclose(OpenRuntime()) == 0);
  // Used so little that ROCm 5.2.3 is unmapped: it is loaded again at another address, or at the same one.
  for (int i = 0; i < 3; ++i) {
    g_runtime = OpenRuntime();
    CALL(lane, HIP(hipStreamSynchronize)(nullptr));
    CHECK(lane, dlclose(g_runtime) == 0);
  }
  for (unsigned round = 0; round < run.rounds; ++round) {
    for (const bool waits : {true, false}) {
      g_runtime = OpenRuntime();
      Use(lane, waits);
      CHECK(lane, dlclose(g_runtime) == 0);
      // While it is closed, the shim's agent must not call into it.
      run.Ask("hold");
      run.Ask("release");
    }
    for (unsigned turn = 0; turn < 3; ++turn) {
      void* library = dlopen(Beside("libreload.so").c_str(), RTLD_NOW | RTLD_LOCAL);
      CHECK(lane, library != nullptr);
      if (library == nullptr) return 1;
      g_runtime = OpenRuntime();
      Value values[4] = {};
      const auto work = Find<int (*)(Value*, unsigned, int)>(library, "reload_work");
      lane.Number("the library's work", work(values, 8 + turn, turn != 1));
      lane.Data("its values", values, sizeof values);
      CHECK(lane, dlclose(library) == 0);
      CHECK(lane, dlclose(g_runtime) == 0);
    }
  }
  g_runtime = OpenRuntime();
  return run.End();
}
