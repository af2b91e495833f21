#include "client-shim/cuda/driver.h"

#include <pthread.h>

#include "client-shim/cuda/vendor.h"
#include "client-shim/stub/client.h"
#include "client-shim/stub/elf_objects.h"
#include "client-shim/stub/launch_path.h"
#include "client-shim/stub/say.h"

namespace xschedd::shim::cuda {

std::atomic<const abi::Word*> g_summary{&g_word_start};
std::atomic<void*> g_real[kEntryCount];

namespace {

// libcuda.so.1, and libcuda.so.RELEASE; not libcudart.so.
constexpr char kDriverPrefix[] = "libcuda.so";

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
ElfObject g_driver;                      // written once, under the lock, before g_is_resolved
std::atomic<bool> g_is_resolved{false};  // release after g_driver and g_real
std::atomic<bool> g_reported_unknown{false};

Result Absent() {
  return kErrorNotSupported;
}

bool Exports(const char* name) {
  return FindSymbol(FindObjectByName(kDriverPrefix), name) != nullptr;
}

bool IsEntry(const char* name) {
  return EntryByName(name) != kEntryCount;
}

bool MayBeOurs(const char* name) {
  return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

void* WrapperByName(const char* name) {
  const uint32_t entry = EntryByName(name);
  return entry != kEntryCount ? kWrappers[entry] : nullptr;
}

void PointAt(const abi::Word* word) {
  // release: pairs with IsOpen, the board behind the word is mapped.
  g_summary.store(word, std::memory_order_release);
}

}  // namespace

bool ResolveDriver() {
  if (g_is_resolved.load(std::memory_order_acquire)) return true;
  // Not under our lock: these take the loader's lock, and another thread may come here from a library's constructor,
  // which holds that lock.
  const ElfObject driver = FindObjectByName(kDriverPrefix);
  if (!driver.IsFound()) return false;
  // It must not be unmapped while the client uses it.
  KeepLoaded(driver);
  pthread_mutex_lock(&g_lock);
  if (!g_is_resolved.load(std::memory_order_relaxed)) {
    // relaxed: published by g_is_resolved.
    for (uint32_t entry = 0; entry < kEntryCount; ++entry) {
      void* found = FindSymbol(driver, kEntryNames[entry]);
      g_real[entry].store(found != nullptr ? found : reinterpret_cast<void*>(&Absent), std::memory_order_relaxed);
    }
    g_driver = driver;
    g_is_resolved.store(true, std::memory_order_release);
  }
  pthread_mutex_unlock(&g_lock);
  return true;
}

void* DriverSymbol(const char* name) {
  return FindSymbol(g_driver, name);
}

bool IsDriverCode(const void* address) {
  if (g_is_resolved.load(std::memory_order_acquire)) return g_driver.Covers(address);
  char path[4096] = "";
  FindObjectByAddress(address, path, sizeof path);
  return HasFileName(path, kDriverPrefix);
}

void* WrapperOf(const char* symbol, void* found, int version, uint64_t flags) {
  // Driver 580 answers every request with one of its exports, so the address identifies the function.
  for (uint32_t entry = 0; entry < kEntryCount; ++entry) {
    if (g_real[entry].load(std::memory_order_relaxed) == found) return kWrappers[entry];
  }
  if (!MayBeOurs(symbol) || !IsDriverCode(found)) return found;
  // For an inner function, the request identifies it. The wrapper calls the export of the same version, which does the
  // same.
  const uint32_t entry = EntryByVersion(symbol, version, (flags & kPerThreadFlag) != 0);
  if (entry != kEntryCount && DriverSymbol(kEntryNames[entry]) != nullptr) return kWrappers[entry];
  // A version newer than the list may have other parameters, so it gets no wrapper.
  const bool is_listed = EntryByVersion(symbol, kNewestKnown, false) != kEntryCount;
  if (is_listed && !g_reported_unknown.exchange(true, std::memory_order_relaxed)) {
    Say("this release of xschedd does not know the CUDA driver's newest ", symbol, "; calls of it are not scheduled");
  }
  return found;
}

FrontEnd g_front_end = {
    .name = "CUDA",
    .entry_names = &kEntryNames,
    .prepare = ResolveDriver,
    .make_vendor = MakeVendor,
    .point_at = PointAt,
    .exposed = {MayBeOurs, IsEntry, WrapperByName, Exports, IsDriverCode},
    .devices_seen = {0},
};

}  // namespace xschedd::shim::cuda
