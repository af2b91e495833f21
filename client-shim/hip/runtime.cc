#include "client-shim/hip/runtime.h"

#include <pthread.h>
#include <string.h>

#include "client-shim/stub/client.h"
#include "client-shim/stub/say.h"

namespace xschedd::shim {

std::atomic<void*> g_real[kRoutes][kEntryCount];

namespace {

constexpr char kRuntimePrefix[] = "libamdhip64.so";

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
ElfObject g_runtime;                     // written once, under the lock, before g_is_resolved
std::atomic<bool> g_is_resolved{false};  // release after g_runtime and g_real[kSymbols]
std::atomic<bool> g_is_patched{false};   // release after g_real[kTable]
int g_version = 0;

HipError Absent() {
  return kHipErrorNotSupported;
}

void ResolveIn(const ElfObject& runtime) {
  for (uint32_t entry = 0; entry < kEntryCount; ++entry) {
    void* found = FindSymbol(runtime, kEntryNames[entry]);
    g_real[kSymbols][entry].store(found != nullptr ? found : reinterpret_cast<void*>(&Absent),
                                  std::memory_order_relaxed);
  }
  g_runtime = runtime;
  g_is_resolved.store(true, std::memory_order_release);
}

}  // namespace

bool IsAbsent(const void* real) {
  return real == reinterpret_cast<const void*>(&Absent);
}

bool ResolveSymbols() {
  if (g_is_resolved.load(std::memory_order_acquire)) return true;
  pthread_mutex_lock(&g_lock);
  if (!g_is_resolved.load(std::memory_order_relaxed)) {
    const ElfObject runtime = FindObjectByName(kRuntimePrefix);
    if (runtime.IsFound()) ResolveIn(runtime);
  }
  pthread_mutex_unlock(&g_lock);
  return g_is_resolved.load(std::memory_order_acquire);
}

bool PrepareRuntime() {
  if (!ResolveSymbols()) return false;
  // Works without a device. From ROCm 6.2 the first call of any function registers the dispatch table.
  const auto version = reinterpret_cast<HipError (*)(int*)>(RuntimeSymbol("hipRuntimeGetVersion"));
  if (version == nullptr || version(&g_version) != kHipSuccess) g_version = 0;
  return true;
}

void* RuntimeSymbol(const char* name) {
  return FindSymbol(g_runtime, name);
}

int RuntimeVersion() {
  return g_version;
}

bool IsTablePatched() {
  return g_is_patched.load(std::memory_order_acquire);
}

bool IsRuntimeCode(const void* address) {
  if (g_is_resolved.load(std::memory_order_acquire)) return g_runtime.Covers(address);
  char path[4096] = "";
  FindObjectByAddress(address, path, sizeof path);
  const char* slash = strrchr(path, '/');
  return strncmp(slash != nullptr ? slash + 1 : path, kRuntimePrefix, sizeof kRuntimePrefix - 1) == 0;
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
  // Which runtime's table it is: the one that a function in it belongs to. A tool that was there first may have put its
  // own function in its place; the table itself still lies in the runtime.
  const ElfObject owner = FindObjectByAddress(table);

  pthread_mutex_lock(&g_lock);
  const bool is_other = g_is_resolved.load(std::memory_order_relaxed) && g_runtime.base != owner.base;
  const bool is_again = g_is_patched.load(std::memory_order_relaxed);
  if (!is_other && !is_again) {
    if (!g_is_resolved.load(std::memory_order_relaxed)) ResolveIn(owner);
    // First all the real functions, then the first wrapper: another thread may call through the table meanwhile.
    for (uint32_t entry = 0; entry < kEntryCount; ++entry) {
      const int index = kTableIndex[entry];
      void* real = has(index) ? *slot(index) : nullptr;
      g_real[kTable][entry].store(real != nullptr ? real : reinterpret_cast<void*>(&Absent), std::memory_order_relaxed);
    }
    g_is_patched.store(true, std::memory_order_release);
    for (uint32_t entry = 0; entry < kEntryCount; ++entry) {
      const int index = kTableIndex[entry];
      if (has(index) && *slot(index) != nullptr) {
        __atomic_store_n(slot(index), kWrappers[kTable][entry], __ATOMIC_RELEASE);
      }
    }
  }
  pthread_mutex_unlock(&g_lock);
  if (is_other) Say("a second HIP runtime was loaded into this process; its work is not scheduled");
}

}  // namespace xschedd::shim
