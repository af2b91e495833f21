#include "client-shim/hip/runtime.h"

#include <pthread.h>
#include <string.h>

#include "client-shim/hip/other_runtimes.h"
#include "client-shim/hip/vendor.h"
#include "client-shim/stub/client.h"

namespace xschedd::shim::hip {

std::atomic<const abi::Word*> g_summary[kRoutes] = {{&g_word_start}, {&g_word_start}};
std::atomic<void*> g_real[kRoutes][kEntryCount];
std::atomic<bool> g_has_tool[kRoutes];

namespace {

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
ElfObject g_runtime;                     // written once, under the lock, before g_is_resolved
std::atomic<bool> g_is_resolved{false};  // release after g_runtime and g_real[kSymbols]
std::atomic<bool> g_is_patched{false};   // release after g_real[kTable]
std::atomic<int> g_version{0};           // relaxed: each thread that prepares writes the same value

Result Absent() {
  return kErrorNotSupported;
}

// Makes `runtime` the scheduled one, unless another thread has been first. The look-ups are not made under our lock:
// they take the loader's lock, and another thread may come here from a library's constructor, which holds that lock.
void ResolveIn(const ElfObject& runtime) {
  void* real[kEntryCount];
  bool has_tool = false;
  for (uint32_t entry = 0; entry < kEntryCount; ++entry) {
    void* found = FindSymbol(runtime, kEntryNames[entry]);
    // A tool between us and the runtime keeps its place.
    void* next = found != nullptr ? NextDefinition(kEntryNames[entry], runtime) : nullptr;
    has_tool |= next != nullptr;
    real[entry] = next != nullptr ? next : found != nullptr ? found : reinterpret_cast<void*>(&Absent);
  }
  // It must not be unmapped while the client uses it.
  KeepLoaded(runtime);
  pthread_mutex_lock(&g_lock);
  if (!g_is_resolved.load(std::memory_order_relaxed)) {
    // relaxed, all: published by g_is_resolved.
    for (uint32_t entry = 0; entry < kEntryCount; ++entry)
      g_real[kSymbols][entry].store(real[entry], std::memory_order_relaxed);
    g_runtime = runtime;
    g_has_tool[kSymbols].store(has_tool, std::memory_order_relaxed);
    g_is_resolved.store(true, std::memory_order_release);
  }
  pthread_mutex_unlock(&g_lock);
}

bool MayBeOurs(const char* name) {
  return (name[0] == 'h' && name[1] == 'i' && name[2] == 'p') || (name[0] == '_' && name[1] == 'Z');
}

bool IsEntry(const char* name) {
  return EntryByName(name) != kEntryCount;
}

void* WrapperByName(const char* name) {
  const uint32_t entry = IsTablePatched() ? kEntryCount : EntryByName(name);
  return entry != kEntryCount ? kWrappers[kSymbols][entry] : nullptr;
}

bool Exports(const char* name) {
  ElfObject runtimes[kMaxRuntimes];
  const unsigned count = FindObjectsByName(kRuntimePrefix, runtimes, kMaxRuntimes);
  for (unsigned i = 0; i < count; ++i) {
    if (FindSymbol(runtimes[i], name) != nullptr) return true;
  }
  return false;
}

void PointAt(const abi::Word* word) {
  const bool by_table = IsTablePatched();
  // release: pairs with IsOpen, the board behind the word is mapped.
  g_summary[kTable].store(by_table ? word : &g_word_open, std::memory_order_release);
  // seq_cst, both: the same, and see DetectOtherRuntimes.
  g_summary[kSymbols].store(by_table ? &g_word_open : word, std::memory_order_seq_cst);
  if (g_has_others.load(std::memory_order_seq_cst)) g_summary[kSymbols].store(&g_word_start, std::memory_order_seq_cst);
}

}  // namespace

bool IsAbsent(const void* real) {
  return real == reinterpret_cast<const void*>(&Absent);
}

bool ResolveSymbols(const void* caller) {
  if (g_is_resolved.load(std::memory_order_acquire)) return true;
  DetectOtherRuntimes();
  ElfObject runtime = RuntimeOf(caller);
  if (!runtime.IsFound()) runtime = FindObjectByName(kRuntimePrefix);
  if (runtime.IsFound()) ResolveIn(runtime);
  return g_is_resolved.load(std::memory_order_acquire);
}

void* RealOfOther(const void* caller, uint32_t entry) {
  return OtherRuntimesFunction(caller, kEntryNames[entry], g_runtime);
}

bool PrepareRuntime() {
  if (!ResolveSymbols(nullptr)) return false;
  // Works without a device. From ROCm 6.2 on, the first call of any function registers the dispatch table.
  const auto version = reinterpret_cast<Result (*)(int*)>(RuntimeSymbol("hipRuntimeGetVersion"));
  int known = 0;
  if (version == nullptr || version(&known) != kSuccess) known = 0;
  g_version.store(known, std::memory_order_relaxed);
  return true;
}

void* RuntimeSymbol(const char* name) {
  return FindSymbol(g_runtime, name);
}

int RuntimeVersion() {
  return g_version.load(std::memory_order_relaxed);
}

bool IsTablePatched() {
  return g_is_patched.load(std::memory_order_acquire);
}

bool IsRuntimeCode(const void* address) {
  if (!g_is_resolved.load(std::memory_order_acquire)) {
    // The first runtime that the program looks up a function of is the scheduled one.
    char path[4096] = "";
    const ElfObject object = FindObjectByAddress(address, path, sizeof path);
    if (!HasFileName(path, kRuntimePrefix)) return false;
    ResolveIn(object);
  }
  return g_runtime.Covers(address);
}

void* WrapperOf(const char* symbol, void* found) {
  // With a patched dispatch table, the runtime's own functions lead to our wrappers.
  if (IsTablePatched()) return found;
  for (uint32_t entry = 0; entry < kEntryCount; ++entry) {
    if (g_real[kSymbols][entry].load(std::memory_order_relaxed) == found) return kWrappers[kSymbols][entry];
  }
  // Some releases return an inner function instead of the export. Then the name decides.
  const uint32_t entry = EntryByName(symbol);
  return entry != kEntryCount && IsRuntimeCode(found) ? kWrappers[kSymbols][entry] : found;
}

void PatchTable(void* table) {
  auto* bytes = static_cast<char*>(table);
  size_t size = 0;
  memcpy(&size, bytes, sizeof size);
  const auto slot = [&](int index) {
    return reinterpret_cast<void**>(bytes + sizeof(size_t) + static_cast<size_t>(index) * sizeof(void*));
  };
  const auto has = [&](int index) {
    return index >= 0 && sizeof(size_t) + (static_cast<size_t>(index) + 1) * sizeof(void*) <= size;
  };
  if (!has(kTableIndex[kEntry_hipLaunchKernel])) return;
  // The runtime whose table it is. Functions in it may already be another tool's, but the table itself is the
  // runtime's.
  const ElfObject owner = FindObjectByAddress(table);

  if (!g_is_resolved.load(std::memory_order_acquire)) ResolveIn(owner);

  pthread_mutex_lock(&g_lock);
  const bool is_other = g_runtime.base != owner.base;
  const bool is_again = g_is_patched.load(std::memory_order_relaxed);  // relaxed: written under this lock
  if (!is_other && !is_again) {
    bool has_tool = false;
    // All real functions are stored before the first wrapper, because another thread may call through the table
    // meanwhile. relaxed: published by g_is_patched, and by the release of each wrapper.
    for (uint32_t entry = 0; entry < kEntryCount; ++entry) {
      const int index = kTableIndex[entry];
      void* real = has(index) ? *slot(index) : nullptr;
      has_tool |= real != nullptr && !g_runtime.Covers(real);
      g_real[kTable][entry].store(real != nullptr ? real : reinterpret_cast<void*>(&Absent), std::memory_order_relaxed);
    }
    g_has_tool[kTable].store(has_tool, std::memory_order_relaxed);
    g_is_patched.store(true, std::memory_order_release);
    for (uint32_t entry = 0; entry < kEntryCount; ++entry) {
      const int index = kTableIndex[entry];
      if (has(index) && *slot(index) != nullptr) {
        __atomic_store_n(slot(index), kWrappers[kTable][entry], __ATOMIC_RELEASE);
      }
    }
  }
  pthread_mutex_unlock(&g_lock);
  if (is_other) ReportSecondRuntime();
}

FrontEnd g_front_end = {
    .name = "HIP",
    .entry_names = &kEntryNames,
    .prepare = PrepareRuntime,
    .make_vendor = MakeVendor,
    .point_at = PointAt,
    .exposed = {MayBeOurs, IsEntry, WrapperByName, Exports, IsRuntimeCode},
    .devices_seen = {0},
};

}  // namespace xschedd::shim::hip
