// A client library that counts: every call is looked at, nothing waits. It stands in for libxschedd-client.so by
// XSCHEDD_CLIENT_LIB. A priority that is not 0 is the stop event that whatever can be timed is launched with.
// Thread rule: one thread.
#include <utility>

#include "client-shim/core/interface.h"

using namespace xschedd::shim;

namespace {

struct Counts {
  int begins = 0, ends = 0, failed = 0, syncs = 0, forks = 0, hints = 0;
  unsigned last_entry = 0;
  const void* last_caller = nullptr;
  void* last_stream = nullptr;
  bool last_drains = false;
  void* recorded = nullptr;  // the last event that was
  void* forgotten = nullptr;
  unsigned devices = 0;  // bits
  void* stop = nullptr;
};
Counts g_counts;
const xschedd::abi::Word g_look{1};

const ClientTable kTable = {
    kInterfaceVersion,
    [](Submission* submission) {
      ++g_counts.begins;
      g_counts.last_entry = submission->entry;
      g_counts.last_caller = submission->caller;
      g_counts.last_stream = submission->stream;
      g_counts.last_drains = submission->drains;
      if (submission->may_time) submission->stop = g_counts.stop;
    },
    [](Submission*, bool ok) {
      ++g_counts.ends;
      g_counts.failed += ok ? 0 : 1;
    },
    [](Sync*, SyncScope, void*) { ++g_counts.syncs; },
    [](Sync*, bool) {},
    [](const Sync*) { return false; },
    [] {},
    [](void* event, void*) { g_counts.recorded = event; },
    [](void* event) { g_counts.forgotten = event; },
    [](void*, int, unsigned) {},
    [](void*) {},
    [](int device) { g_counts.devices |= 1u << device; },
    [] {},
    [](void*) {},
    [](void*) {},
    [] {},
    [] { ++g_counts.forks; },
    [](int priority) {
      g_counts.stop = reinterpret_cast<void*>(static_cast<std::uintptr_t>(priority));
      return XSCHEDD_OK;
    },
    [](unsigned weight) {
      g_counts.hints += static_cast<int>(weight);
      return XSCHEDD_OK;
    },
    [](std::uint64_t us) {
      g_counts.hints += static_cast<int>(us);
      return XSCHEDD_OK;
    },
    [](void*, int) { return XSCHEDD_OK; },
    [](void*, unsigned) { return XSCHEDD_OK; },
    [](void*, std::uint64_t us) {
      g_counts.hints += static_cast<int>(us);
      return XSCHEDD_OK;
    },
    [](int, std::uint64_t) { return XSCHEDD_OK; },
    [](int) { return XSCHEDD_OK; },
    [](void*, std::uint64_t) { return XSCHEDD_OK; },
    [](void*) { return XSCHEDD_OK; },
    [](xschedd_status* status) {
      // The one door that a program has to a client library.
      status->state = XSCHEDD_STATE_SCHEDULED;
      status->submitted = static_cast<unsigned long long>(g_counts.begins);
      status->held_ns = static_cast<unsigned long long>(g_counts.syncs);
      status->passthrough = static_cast<unsigned long long>(g_counts.failed);
      status->effective_priority = g_counts.hints;
      status->client_id = reinterpret_cast<unsigned long long>(g_counts.last_caller);
      return XSCHEDD_OK;
    },
    [](int, xschedd_device_status*) { return XSCHEDD_OK; },
};

}  // namespace

// What a status has no room for.
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
extern "C" __attribute__((visibility("default"))) unsigned fake_client_devices() {
  return g_counts.devices;
}

extern "C" __attribute__((visibility("default"))) const ClientTable* xschedd_client_start(const StubTable* stub) {
  stub->set_summary(&g_look);
  return &kTable;
}
