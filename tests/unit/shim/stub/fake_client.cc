// A client library that counts every call and waits for nothing; XSCHEDD_CLIENT_LIB puts it in place of
// libxschedd-client.so. With a priority other than 0, launches that can be timed get it as their stop event. With
// FAKE_CLIENT_HINT, another thread sets that weight while the start passes on the deadline. Thread rule: any thread;
// the data of the last call, one thread.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "client-shim/core/interface.h"
#include "client-shim/core/memory_account.h"

using namespace xschedd::shim;

namespace {

struct Counts {
  std::atomic<int> begins = 0, ends = 0, failed = 0, syncs = 0, forks = 0, hints = 0, resets = 0;
  unsigned last_entry = 0;
  std::uint64_t last_key = 0;
  const void* last_caller = nullptr;
  void* last_stream = nullptr;
  bool last_drains = false;
  void* recorded = nullptr;  // the last event that was recorded
  void* forgotten = nullptr;
  unsigned devices = 0;  // bits
  void* stop = nullptr;
  std::atomic<int> cancellable = 0;  // calls that came with cancellation enabled: interface.h forbids it
};
Counts g_counts;

void SeeCancelState() {
  int state = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  if (state == PTHREAD_CANCEL_ENABLE) ++g_counts.cancellable;
}
// The first deadline comes from the start.
void HintDuringStart() {
  static std::atomic<bool> is_first{true};
  const char* const weight = std::getenv("FAKE_CLIENT_HINT");
  if (weight == nullptr || !is_first.exchange(false)) return;
  const auto set = reinterpret_cast<int (*)(unsigned)>(dlsym(RTLD_DEFAULT, "xschedd_set_weight"));
  std::thread([&] { set(static_cast<unsigned>(std::atoi(weight))); }).join();
}

const xschedd::abi::Word g_look{1};
const Vendor* g_vendor = nullptr;

// The real account, under a limit that the program sets.
constexpr std::uint32_t kDevice = 3;  // of the fake runtimes
MemoryAccount g_account([](std::uint32_t, const MemoryUse&) {});
std::uint64_t g_memory_limit = 0;
int g_seen_device = -2;
struct Freed {
  MemoryAccount::Physical* physical;
  std::uint64_t handle;
  bool is_counted;
  MemoryCost cost;
};
static_assert(sizeof(Freed) <= sizeof(MemoryRelease::core));
MemoryCost CostOf(const MemoryRequest& request) {
  return MemoryCost{static_cast<std::uint32_t>(request.device), request.kind == MemoryKind::kPooled, request.bytes,
                    request.owner};
}

const ClientTable kTable = {
    kInterfaceVersion,
    [](Submission* submission) {
      SeeCancelState();
      ++g_counts.begins;
      g_counts.last_entry = submission->entry;
      g_counts.last_key = submission->key;
      g_counts.last_caller = submission->caller;
      g_counts.last_stream = submission->stream;
      g_counts.last_drains = submission->drains;
      if (submission->may_time) submission->stop = g_counts.stop;
    },
    [](Submission*, bool ok) {
      SeeCancelState();
      ++g_counts.ends;
      g_counts.failed += ok ? 0 : 1;
    },
    [](Sync*, SyncScope, void*) {
      SeeCancelState();
      ++g_counts.syncs;
    },
    [](Sync*, bool) { SeeCancelState(); },
    [](const Sync*) {
      SeeCancelState();
      return false;
    },
    [](void* event, void*) {
      SeeCancelState();
      g_counts.recorded = event;
    },
    [](void* event) {
      SeeCancelState();
      g_counts.forgotten = event;
    },
    [](void*, int, unsigned) { SeeCancelState(); },
    [](void*) { SeeCancelState(); },
    [](int device) {
      SeeCancelState();
      g_counts.devices |= 1u << device;
    },
    [] {
      SeeCancelState();
      ++g_counts.resets;
    },
    [](void*) { SeeCancelState(); },
    [](void*) { SeeCancelState(); },
    [] { SeeCancelState(); },
    [] { ++g_counts.forks; },
    [](MemoryRequest* request) {
      SeeCancelState();
      if (request->device < 0) request->device = g_vendor->current_device();
      return g_account.Reserve(CostOf(*request), g_memory_limit, 0);
    },
    [](const MemoryRequest* request, std::uint64_t handle, std::uint64_t bytes) {
      SeeCancelState();
      if (handle == 0) return g_account.Return(CostOf(*request));
      if (request->kind == MemoryKind::kPhysical) return g_account.KeepPhysical(CostOf(*request), handle, bytes);
      g_account.Keep(CostOf(*request), handle, bytes);
    },
    [](const MemoryRequest* request) { g_account.Return(CostOf(*request)); },
    [](MemoryRelease* release, std::uint64_t handle, bool is_physical) {
      SeeCancelState();
      Freed freed{is_physical ? g_account.Releasing(handle) : nullptr, handle, false, {}};
      if (!is_physical) {
        const auto cost = g_account.Take(handle);
        freed.is_counted = cost.has_value();
        if (cost) freed.cost = *cost;
      }
      std::memcpy(release->core, &freed, sizeof freed);
    },
    [](MemoryRelease* release, bool ok) {
      Freed freed;
      std::memcpy(&freed, release->core, sizeof freed);
      if (freed.physical != nullptr) g_account.Released(freed.physical, ok);
      if (freed.is_counted && ok) g_account.Freed(freed.cost);
      if (freed.is_counted && !ok) g_account.PutBack(freed.handle, freed.cost);
    },
    [](std::uint64_t handle) { g_account.Retain(handle); },
    [](std::uint64_t at, std::uint64_t bytes, std::uint64_t handle) { g_account.Map(at, bytes, handle); },
    [](std::uint64_t at, std::uint64_t bytes) { g_account.Unmap(at, bytes); },
    [](int device, const void* owner) { g_account.Forget(static_cast<std::uint32_t>(device), owner); },
    [](int device, MemoryView* view) {
      SeeCancelState();
      g_seen_device = device;
      *view = MemoryView{g_memory_limit, g_account.Use(kDevice).Bytes()};
    },
    [](int priority) {
      SeeCancelState();
      g_counts.stop = reinterpret_cast<void*>(static_cast<std::uintptr_t>(priority));
      return XSCHEDD_OK;
    },
    [](unsigned weight) {
      SeeCancelState();
      g_counts.hints += static_cast<int>(weight);
      return XSCHEDD_OK;
    },
    [](std::uint64_t us) {
      SeeCancelState();
      g_counts.hints += static_cast<int>(us);
      HintDuringStart();
      return XSCHEDD_OK;
    },
    [](void*, int) {
      SeeCancelState();
      return XSCHEDD_OK;
    },
    [](void*, unsigned) {
      SeeCancelState();
      return XSCHEDD_OK;
    },
    [](void*, std::uint64_t us) {
      SeeCancelState();
      g_counts.hints += static_cast<int>(us);
      return XSCHEDD_OK;
    },
    [](int, std::uint64_t) {
      SeeCancelState();
      return XSCHEDD_OK;
    },
    [](int) {
      SeeCancelState();
      return XSCHEDD_OK;
    },
    [](void*, std::uint64_t) {
      SeeCancelState();
      return XSCHEDD_OK;
    },
    [](void*) {
      SeeCancelState();
      return XSCHEDD_OK;
    },
    [](bool) {
      SeeCancelState();
      return XSCHEDD_OK;
    },
    [](xschedd_status* status) {
      SeeCancelState();
      // The only function through which a program reaches a client library.
      status->state = XSCHEDD_STATE_SCHEDULED;
      status->submitted = static_cast<unsigned long long>(g_counts.begins);
      status->held_ns = static_cast<unsigned long long>(g_counts.syncs);
      status->passthrough = static_cast<unsigned long long>(g_counts.failed);
      status->effective_priority = g_counts.hints;
      status->client_id = reinterpret_cast<unsigned long long>(g_counts.last_caller);
      return XSCHEDD_OK;
    },
    [](int, xschedd_device_status*) {
      SeeCancelState();
      return XSCHEDD_OK;
    },
};

}  // namespace

// Data that does not fit into a status.
extern "C" __attribute__((visibility("default"))) void* fake_client_last_stream() {
  return g_counts.last_stream;
}
extern "C" __attribute__((visibility("default"))) bool fake_client_last_drains() {
  return g_counts.last_drains;
}
extern "C" __attribute__((visibility("default"))) void* fake_client_take_recorded() {
  return std::exchange(g_counts.recorded, nullptr);
}
extern "C" __attribute__((visibility("default"))) void* fake_client_take_forgotten() {
  return std::exchange(g_counts.forgotten, nullptr);
}
extern "C" __attribute__((visibility("default"))) std::uint64_t fake_client_last_key() {
  return g_counts.last_key;
}
extern "C" __attribute__((visibility("default"))) int fake_client_resets() {
  return g_counts.resets;
}
// The marker that the core would record next on a device; null if it cannot.
extern "C" __attribute__((visibility("default"))) void* fake_client_mark(int device, void* stream) {
  void* const marker = g_vendor->create_marker(device);
  return marker != nullptr && g_vendor->record_marker(device, marker, stream) ? marker : nullptr;
}
extern "C" __attribute__((visibility("default"))) int fake_client_cancellable() {
  return g_counts.cancellable;
}
extern "C" __attribute__((visibility("default"))) void fake_client_limit_memory(std::uint64_t bytes) {
  g_memory_limit = bytes;
}
extern "C" __attribute__((visibility("default"))) std::uint64_t fake_client_memory(unsigned device) {
  return g_account.Use(device).Bytes();
}
extern "C" __attribute__((visibility("default"))) int fake_client_seen_device() {
  return g_seen_device;
}
extern "C" __attribute__((visibility("default"))) unsigned fake_client_devices() {
  return g_counts.devices;
}

extern "C" __attribute__((visibility("default"))) const ClientTable* xschedd_client_start(const StubTable* stub) {
  SeeCancelState();
  g_vendor = stub->vendor;
  stub->set_summary(&g_look);
  return &kTable;
}
