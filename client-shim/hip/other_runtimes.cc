#include "client-shim/hip/other_runtimes.h"

#include <dlfcn.h>
#include <string.h>

#include "client-shim/hip/runtime.h"
#include "client-shim/hip/runtime_cache.h"
#include "client-shim/stub/client.h"
#include "client-shim/stub/say.h"

namespace xschedd::shim::hip {

std::atomic<bool> g_has_others{false};

namespace {

// An export of every runtime that the shim does not define. The caller's runtime is the one that this name is bound to.
constexpr char kProbe[] = "hipRuntimeGetVersion";

std::atomic<uint64_t> g_generation{0};
std::atomic<bool> g_reported{false};

constinit RuntimeCache g_cache{};

int IndexOf(const void* address, const ElfObject* runtimes, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    if (runtimes[i].Covers(address)) return static_cast<int>(i);
  }
  return -1;
}

// What the loader would bind kProbe to now, in the program's scope or the dependencies of the caller's object.
const void* BoundNow(const char* path) {
  const DlsymFunction look_up = RealDlsym();
  const DlopenFunction open = RealDlopen();
  if (look_up == nullptr || open == nullptr) return nullptr;
  const void* found = look_up(RTLD_DEFAULT, kProbe);
  if (found == nullptr && *path != '\0') {
    if (void* object = open(path, RTLD_LAZY | RTLD_NOLOAD)) {
      found = look_up(object, kProbe);
      CloseObject(object);
    }
  }
  if (found == nullptr) ForgetLoaderError();
  return found;
}

// The index of the runtime that the code at `caller` is bound to; -1: unknown.
int IndexFor(const void* caller, const ElfObject* runtimes, unsigned count) {
  if (count == 0) return -1;
  if (count == 1) return 0;
  int index = IndexOf(caller, runtimes, count);
  if (index >= 0) return index;
  char path[4096] = "";
  const ElfObject object = FindObjectByAddress(caller, path, sizeof path);
  index = BoundTo(object, runtimes, count);
  return index >= 0 ? index : IndexOf(BoundNow(path), runtimes, count);
}

}  // namespace

void DetectOtherRuntimes() {
  if (HasOthers()) return;
  const uint64_t generation = LoaderGeneration();
  // relaxed: an extra check does no harm.
  if (g_generation.load(std::memory_order_relaxed) == generation) return;
  ElfObject runtimes[kMaxRuntimes];
  if (FindObjectsByName(kRuntimePrefix, runtimes, kMaxRuntimes) > 1) {
    // seq_cst, both: PointAt stores the word and then reads the flag. So the last word stored is g_word_start.
    g_has_others.store(true, std::memory_order_seq_cst);
    g_summary[kSymbols].store(&g_word_start, std::memory_order_seq_cst);
  }
  g_generation.store(generation, std::memory_order_relaxed);
}

ElfObject RuntimeOf(const void* caller) {
  ElfObject runtimes[kMaxRuntimes];
  const unsigned count = FindObjectsByName(kRuntimePrefix, runtimes, kMaxRuntimes);
  const int index = IndexFor(caller, runtimes, count);
  return index >= 0 ? runtimes[index] : ElfObject{};
}

void* OtherRuntimesFunction(const void* caller, const char* name, const ElfObject& scheduled) {
  const uint64_t generation = LoaderGeneration();
  ElfObject runtime;
  if (!g_cache.Find(caller, generation, &runtime)) {
    runtime = RuntimeOf(caller);
    g_cache.Put(caller, generation, runtime);
  }
  if (!runtime.IsFound() || runtime.base == scheduled.base) return nullptr;
  ReportSecondRuntime();
  return FindSymbol(runtime, name);
}

void ReportSecondRuntime() {
  if (g_reported.exchange(true, std::memory_order_relaxed)) return;
  Say("this process works with a second HIP runtime; work that it submits there is not scheduled");
}

void* NextDefinition(const char* name, const ElfObject& runtime) {
  const DlsymFunction look_up = RealDlsym();
  void* found = look_up != nullptr ? look_up(RTLD_NEXT, name) : nullptr;
  if (found == nullptr) {
    ForgetLoaderError();
    return nullptr;
  }
  if (runtime.Covers(found)) return nullptr;
  ElfObject runtimes[kMaxRuntimes];
  const unsigned count = FindObjectsByName(kRuntimePrefix, runtimes, kMaxRuntimes);
  return IndexOf(found, runtimes, count) >= 0 ? nullptr : found;
}

}  // namespace xschedd::shim::hip

// The first call that a compiled program or library makes of its runtime, in a constructor. So a second runtime is
// detected before it gets any work.
extern "C" __attribute__((visibility("default"))) void** xschedd_register_fat_binary(const void* data) asm(
    "__hipRegisterFatBinary");
void** xschedd_register_fat_binary(const void* data) {
  using namespace xschedd::shim;
  using namespace xschedd::shim::hip;
  constexpr char kName[] = "__hipRegisterFatBinary";
  DetectOtherRuntimes();
  void* real = NextDefinition(kName);
  if (real == nullptr) real = FindSymbol(RuntimeOf(__builtin_return_address(0)), kName);
  return real != nullptr ? reinterpret_cast<void** (*)(const void*)>(real)(data) : nullptr;
}
