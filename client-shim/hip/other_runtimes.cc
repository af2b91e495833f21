#include "client-shim/hip/other_runtimes.h"

#include <dlfcn.h>
#include <string.h>

#include "client-shim/hip/runtime.h"
#include "client-shim/stub/client.h"
#include "client-shim/stub/say.h"

namespace xschedd::shim::hip {

std::atomic<bool> g_has_others{false};

namespace {

// An export of every runtime that is not ours: what it is bound to is the caller's runtime.
constexpr char kProbe[] = "hipRuntimeGetVersion";

std::atomic<uint64_t> g_generation{0};
std::atomic<bool> g_reported{false};

// Which runtime a caller belongs to. No lock, so that a child of fork cannot find it taken: a reader that sees the same
// key before and after has what belongs to it.
struct Known {
  std::atomic<uint64_t> key{0};
  std::atomic<uint64_t> base{0};
  std::atomic<uint64_t> dynamic{0};
};
constexpr unsigned kKnown = 256;
Known g_known[kKnown];

// Addresses of user space have 47 bits; what the loader did since makes an answer old.
uint64_t KeyOf(const void* caller, uint64_t generation) {
  return (reinterpret_cast<uintptr_t>(caller) << 16) | (generation & 0xffff);
}

int PlaceOf(const void* address, const ElfObject* runtimes, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    if (runtimes[i].Covers(address)) return static_cast<int>(i);
  }
  return -1;
}

// As the loader would bind the caller now: in the program's scope, else among what its object depends on.
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

int FindPlace(const void* caller, const ElfObject* runtimes, unsigned count) {
  if (count == 0) return -1;
  if (count == 1) return 0;
  int place = PlaceOf(caller, runtimes, count);
  if (place >= 0) return place;
  char path[4096] = "";
  const ElfObject object = FindObjectByAddress(caller, path, sizeof path);
  place = BoundTo(object, runtimes, count);
  return place >= 0 ? place : PlaceOf(BoundNow(path), runtimes, count);
}

}  // namespace

void LookForOthers() {
  if (HasOthers()) return;
  const uint64_t generation = LoaderGeneration();
  // relaxed: a look too many does no harm.
  if (g_generation.load(std::memory_order_relaxed) == generation) return;
  ElfObject runtimes[kMaxRuntimes];
  if (FindObjectsByName(kRuntimePrefix, runtimes, kMaxRuntimes) > 1) {
    g_has_others.store(true, std::memory_order_seq_cst);
    // What points it elsewhere looks at the flag afterwards (PointAt).
    g_summary[kSymbols].store(&g_word_start, std::memory_order_seq_cst);
  }
  g_generation.store(generation, std::memory_order_relaxed);
}

ElfObject RuntimeOf(const void* caller) {
  ElfObject runtimes[kMaxRuntimes];
  const unsigned count = FindObjectsByName(kRuntimePrefix, runtimes, kMaxRuntimes);
  const int place = FindPlace(caller, runtimes, count);
  return place >= 0 ? runtimes[place] : ElfObject{};
}

void* OtherRuntimesFunction(const void* caller, const char* name, const ElfObject& scheduled) {
  const uint64_t key = KeyOf(caller, LoaderGeneration());
  Known& known = g_known[(reinterpret_cast<uintptr_t>(caller) >> 2) % kKnown];
  ElfObject runtime;
  const bool is_known = known.key.load(std::memory_order_acquire) == key;
  runtime.base = known.base.load(std::memory_order_relaxed);
  runtime.dynamic = known.dynamic.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (!is_known || known.key.load(std::memory_order_relaxed) != key) {
    runtime = RuntimeOf(caller);
    known.key.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    known.base.store(runtime.base, std::memory_order_relaxed);
    known.dynamic.store(runtime.dynamic, std::memory_order_relaxed);
    known.key.store(key, std::memory_order_release);
  }
  if (!runtime.IsFound() || runtime.base == scheduled.base) return nullptr;
  SayThereIsAnother();
  return FindSymbol(runtime, name);
}

void SayThereIsAnother() {
  if (g_reported.exchange(true, std::memory_order_relaxed)) return;
  Say("this process works with a second HIP runtime; what it submits there is not scheduled");
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
  return PlaceOf(found, runtimes, count) >= 0 ? nullptr : found;
}

}  // namespace xschedd::shim::hip

// The first that a compiled program or library does with its runtime, in its constructor. Which runtime that is, is
// known before it makes a call that submits work.
extern "C" __attribute__((visibility("default"))) void** xschedd_register_fat_binary(const void* data) asm(
    "__hipRegisterFatBinary");
void** xschedd_register_fat_binary(const void* data) {
  using namespace xschedd::shim;
  using namespace xschedd::shim::hip;
  constexpr char kName[] = "__hipRegisterFatBinary";
  LookForOthers();
  void* real = NextDefinition(kName);
  if (real == nullptr) real = FindSymbol(RuntimeOf(__builtin_return_address(0)), kName);
  return real != nullptr ? reinterpret_cast<void** (*)(const void*)>(real)(data) : nullptr;
}
