// The boundary of libxschedd-client.so: the exported functions, and the table behind them. No exception crosses it: one
// ends the scheduling of this process, which fails open. errno is kept. Thread rule: as in interface.h.
#include <cerrno>

#include "client-shim/core/client.h"
#include "client-shim/core/host_limits.h"

namespace xschedd::shim {
namespace {

Client* g_client = nullptr;  // set once by Start, before the table is handed out; never destroyed

template <typename Body>
void Guarded(Body body) {
  const int saved_errno = errno;
  try {
    body();
  } catch (...) {
    g_client->GiveUp();
  }
  errno = saved_errno;
}

template <typename Body>
int GuardedResult(Body body) {
  int result = XSCHEDD_ERROR_INERT;
  Guarded([&] { result = body(); });
  return result;
}

const ClientTable kTable = {
    kInterfaceVersion,
    [](Submission* submission) { Guarded([&] { g_client->SubmitBegin(submission); }); },
    [](Submission* submission, bool ok) { Guarded([&] { g_client->SubmitEnd(submission, ok); }); },
    [](Sync* sync, SyncScope scope, void* object) { Guarded([&] { g_client->SyncBegin(sync, scope, object); }); },
    [](Sync* sync, bool ok) { Guarded([&] { g_client->SyncEnd(sync, ok); }); },
    [](const Sync* sync) {
      bool again = false;
      Guarded([&] { again = g_client->QueryAgain(*sync); });
      return again;
    },
    [](void* event, void* stream) { Guarded([&] { g_client->EventRecorded(event, stream); }); },
    [](void* event) { Guarded([&] { g_client->EventDestroyed(event); }); },
    [](void* stream, int priority, unsigned flags) {
      Guarded([&] { g_client->StreamCreated(stream, priority, flags); });
    },
    [](void* stream) { Guarded([&] { g_client->StreamDestroying(stream); }); },
    [](int device) { Guarded([&] { g_client->DeviceCurrent(device); }); },
    [] { Guarded([] { g_client->DeviceReset(); }); },
    [](void* stream) { Guarded([&] { g_client->CaptureBegun(stream); }); },
    [](void* stream) { Guarded([&] { g_client->CaptureEnded(stream); }); },
    [] { Guarded([] { g_client->Exiting(); }); },
    [] { g_client->Forked(); },
    [](MemoryRequest* request) {
      bool may = true;
      Guarded([&] { may = g_client->MemoryReserve(request); });
      return may;
    },
    [](const MemoryRequest* request, std::uint64_t handle, std::uint64_t bytes) {
      Guarded([&] { g_client->MemoryKeep(*request, handle, bytes); });
    },
    [](const MemoryRequest* request) { Guarded([&] { g_client->MemoryReturn(*request); }); },
    [](MemoryRelease* release, std::uint64_t handle, bool is_physical) {
      Guarded([&] { g_client->MemoryFreeing(release, handle, is_physical); });
    },
    [](MemoryRelease* release, bool ok) { Guarded([&] { g_client->MemoryFreed(release, ok); }); },
    [](std::uint64_t handle) { Guarded([&] { g_client->Memory().Retain(handle); }); },
    [](std::uint64_t at, std::uint64_t bytes, std::uint64_t handle) {
      Guarded([&] { g_client->Memory().Map(at, bytes, handle); });
    },
    [](std::uint64_t at, std::uint64_t bytes) { Guarded([&] { g_client->Memory().Unmap(at, bytes); }); },
    [](int device, const void* owner) { Guarded([&] { g_client->MemoryGone(device, owner); }); },
    [](int device, MemoryView* view) {
      *view = MemoryView{};
      Guarded([&] { *view = g_client->ViewMemory(device); });
    },
    [](int priority) { return GuardedResult([&] { return g_client->Requests().SetPriority(priority); }); },
    [](unsigned weight) { return GuardedResult([&] { return g_client->Requests().SetWeight(weight); }); },
    [](std::uint64_t us) { return GuardedResult([&] { return g_client->Requests().SetDeadline(us); }); },
    [](void* stream, int priority) {
      return GuardedResult([&] { return g_client->Requests().SetStreamPriority(stream, priority); });
    },
    [](void* stream, unsigned weight) {
      return GuardedResult([&] { return g_client->Requests().SetStreamWeight(stream, weight); });
    },
    [](void* stream, std::uint64_t us) {
      return GuardedResult([&] { return g_client->Requests().SetStreamDeadline(stream, us); });
    },
    [](int device, std::uint64_t us) { return GuardedResult([&] { return g_client->Requests().Hold(device, us); }); },
    [](int device) { return GuardedResult([&] { return g_client->Requests().Release(device); }); },
    [](void* stream, std::uint64_t us) {
      return GuardedResult([&] { return g_client->Requests().HoldStream(stream, us); });
    },
    [](void* stream) { return GuardedResult([&] { return g_client->Requests().ReleaseStream(stream); }); },
    [](bool on) { return GuardedResult([&] { return g_client->ScheduleStreams(on); }); },
    [](xschedd_status* status) { return GuardedResult([&] { return g_client->GetStatus(status); }); },
    [](int device, xschedd_device_status* status) {
      return GuardedResult([&] { return g_client->GetDeviceStatus(device, status); });
    },
};

}  // namespace
}  // namespace xschedd::shim

extern "C" void xschedd_library_failed(void) {
  using namespace xschedd::shim;
  if (g_client == nullptr || g_client->HasGivenUp()) return;
  g_client->GiveUp();
  Warn(
      "this process runs unscheduled from now on: gRPC failed, usually for lack of threads, file descriptors or "
      "memory; raise the limits (ulimit -u, -n, -v)");
}

extern "C" __attribute__((visibility("default")))
const xschedd::shim::LibraryAbout xschedd_client_about = {xschedd::shim::kInterfaceVersion, XSCHEDD_VERSION};

extern "C" __attribute__((visibility("default"))) const xschedd::shim::ClientTable* xschedd_client_start(
    const xschedd::shim::StubTable* stub) {
  using namespace xschedd::shim;
  if (stub == nullptr || stub->version != kInterfaceVersion) return nullptr;
  const int saved_errno = errno;
  try {
    g_client = new Client(*stub);
    g_client->Start();
  } catch (...) {
    g_client = nullptr;
  }
  errno = saved_errno;
  return g_client != nullptr ? &kTable : nullptr;
}
