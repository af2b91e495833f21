// The client of one process: everything behind the stub's slow path. There is one object, made when the library starts
// and never destroyed, because threads of the host may be inside it until the process ends.
//
//   any thread ──► Client (gate, window, tracking) ──► Session (shared memory) ──► daemon
//                     │ posts, never blocks
//                     ▼
//                  Agent (one thread) ──► GrpcStream ──► daemon
//
// Thread rule: any thread, except for what is marked as the agent's.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "client-shim/core/agent.h"
#include "client-shim/core/captures.h"
#include "client-shim/core/environment.h"
#include "client-shim/core/interface.h"
#include "client-shim/core/memory_account.h"
#include "client-shim/core/passthrough.h"
#include "client-shim/core/program_requests.h"
#include "client-shim/core/session.h"
#include "client-shim/core/stream_gate.h"
#include "client-shim/core/stream_table.h"
#include "client-shim/core/trackers.h"

namespace xschedd::shim {

struct TrackedLaunch;

// The most device memory that this process may have on a device, and whose word that is. 0: as much as there is.
struct MemoryLimit {
  std::uint64_t bytes = 0;
  const char* by = "";
};

class Client : private ProgramRequests::Effects {
 public:
  explicit Client(const StubTable& stub);

  // Starts the agent and gives it a short while to find the daemon.
  void Start();

  // ---- core/interface.h, ClientTable
  void SubmitBegin(Submission* submission);
  void SubmitEnd(Submission* submission, bool ok);
  void SyncBegin(Sync* sync, SyncScope scope, void* object);
  void SyncEnd(Sync* sync, bool ok);
  bool QueryAgain(const Sync& sync);
  void EventRecorded(void* event, void* stream);
  void EventDestroyed(void* event);
  void StreamCreated(void* stream, int priority, unsigned flags);
  void StreamDestroying(void* stream);
  void DeviceCurrent(int device) {
    if (IsDevice(device)) Attach(device);
  }
  void DeviceReset();
  void CaptureBegun(void* stream);
  void CaptureEnded(void* stream) { captures_.End(stream); }
  // Device memory (client_memory.cc).
  bool MemoryReserve(MemoryRequest* request);
  void MemoryKeep(const MemoryRequest& request, std::uint64_t handle, std::uint64_t bytes);
  void MemoryReturn(const MemoryRequest& request);
  void MemoryFreeing(MemoryRelease* release, std::uint64_t handle, bool is_physical);
  void MemoryFreed(MemoryRelease* release, bool ok);
  MemoryAccount& Memory() { return memory_; }
  void MemoryGone(int device, const void* owner) {
    if (IsDevice(device)) memory_.Forget(static_cast<std::uint32_t>(device), owner);
  }
  MemoryView ViewMemory(int device);
  void Exiting();
  void Forked();
  // The calling thread ends. `thread`: the number of its default stream (WorkingThread).
  void ThreadEnded(std::uint64_t thread);
  ProgramRequests& Requests() { return requests_; }
  int ScheduleStreams(bool on);
  int GetStatus(xschedd_status* status);
  int GetDeviceStatus(int device, xschedd_device_status* status);
  // An unexpected failure, such as running out of memory: scheduling ends for this process.
  void GiveUp();

  // ---- the agent's
  const Vendor& GetVendor() const { return *stub_.vendor; }
  const Environment& GetEnvironment() const { return environment_; }
  const ProgramRequests& Requests() const { return requests_; }
  // From now on threads obey this session's gates, and after EndSession none.
  void BeginSession(Session* session);
  void EndSession();
  // Until then, the daemon may not have set the gate of a new device yet. All launches count meanwhile, as if the
  // device was tracked; otherwise nobody would know of the first ones. 0: no gate is awaited.
  void AwaitDecisionUntil(std::uint64_t until_ns);
  // The longest that the daemon takes to set the gate of a new device.
  static constexpr std::uint64_t kFirstDecisionNs = 50'000'000;
  std::uint64_t AwaitsDecisionUntilNs() const { return decision_until_ns_.load(std::memory_order_relaxed); }
  // relaxed: the agent's thread is the one that publishes it.
  const Session* PublishedSession() const { return session_.load(std::memory_order_relaxed); }
  void SetDescription(std::uint64_t client_id, int effective_priority);
  // What the daemon wants passed through, in addition to the environment's. Threads that wait at a gate check again.
  void SetPassthrough(const std::vector<std::string>& entries);
  std::uint64_t TickTrackers(std::uint64_t now_ns) const { return trackers_.Tick(now_ns, PublishedSession()); }
  ActivityMessage TakeActivity();
  // A bit per ordinal. relaxed: a set that only grows.
  std::uint64_t AttachedDevices() const { return attached_.load(std::memory_order_relaxed); }
  // The ids of the streams that the daemon is to know.
  std::vector<std::uint64_t> LiveQueues() const;
  // Without a value: there is no such stream, or the daemon is not to know it.
  std::optional<LiveQueue> QueueNow(std::uint64_t queue) const;
  // The program's exit handlers run, and the runtime is about to be torn down. seq_cst: see Agent::InRuntime.
  bool IsExiting() const { return is_exiting_.load(std::memory_order_seq_cst); }
  // relaxed: GiveUp ends the session, which is what releases threads.
  bool HasGivenUp() const { return has_given_up_.load(std::memory_order_relaxed); }

 private:
  static bool IsDevice(int device) { return device >= 0 && device < static_cast<int>(abi::kMaxDevices); }
  // -1: not known.
  int DeviceOf(void* stream) {
    if (IsDefaultStream(stream)) return stub_.vendor->current_device();
    const int known = streams_.KnownDeviceOf(stream);
    return known >= 0 ? known : DeviceOfNew(stream);
  }
  int DeviceOfNew(void* stream);
  StreamKey KeyOf(void* stream) {
    if (!IsDefaultStream(stream)) return StreamKey{stream, 0};
    return reinterpret_cast<std::uintptr_t>(stream) == kPerThreadHandle ? KeyOfThread(stream) : StreamKey{};
  }
  StreamKey KeyOfThread(void* stream);
  // `device`: IsDevice.
  void Attach(int device) {
    // relaxed: a set that only grows.
    if ((attached_.load(std::memory_order_relaxed) >> device & 1) == 0) AttachNew(device);
  }
  void AttachNew(int device);
  // The steps of a launch, in this order (tracked_launch.cc).
  bool IsCounted(const Session& session, std::uint32_t word, std::uint64_t now_ns) const {
    return AwaitsDecisionUntilNs() != 0 || ((word & abi::kFlagMask) != 0 && now_ns < session.LeaseUntilNs());
  }
  // The device's gate; 0 (open, untracked) without a session.
  static std::uint32_t GateWord(const Session* session, std::uint32_t slot) {
    return session != nullptr ? session->Board().Word(slot) : 0;
  }
  // The daemon's window. `word`: the gate's, read before.
  [[gnu::always_inline]] static Window WindowOf(const Session& session, std::uint32_t slot, std::uint32_t word) {
    const BoardReader& board = session.Board();
    return Window{board.WindowUs(slot), board.WindowFloor(slot), (word & abi::kGuarded) != 0};
  }
  // The same, but for a stream below others no wider than streams may have.
  Window WindowFor(const Session* session, std::uint32_t slot, std::uint32_t word, void* stream) const;
  bool EnterAndPassGate(const Submission& submission, std::uint32_t slot, std::uint64_t now_ns, TrackedLaunch* launch);
  bool PassGate(Session* session, std::uint32_t slot, const Submission& submission);
  void WaitForRoomAndStart(const Submission& submission, std::uint32_t slot, bool passes, TrackedLaunch* launch);
  void WaitForRoom(const Submission& submission, std::uint32_t slot, TrackedLaunch* launch);
  bool NeverWaits(const Submission& submission);
  static MemoryCost CostOf(const MemoryRequest& request);  // of a device that there is
  MemoryLimit LimitOf(std::uint32_t slot);
  MemoryLimit LimitNow(std::uint32_t slot) const;
  std::uint64_t KeptByPools(std::uint32_t slot, const MemoryLimit& limit);
  void SayRefused(const MemoryCost& cost, const MemoryLimit& limit);
  void WaitWhileOwnHeld(const Submission& submission);
  void WaitForStreams(const Submission& submission);
  void OrderStreams();
  void PointSummary();
  void PointSummaryLocked();
  // From the first launch that counts until CheckForMarkers finds no marker, even if tracking or the session has ended,
  // calls take the slow path: a query that finds only a marker of ours unfinished must be repeated, and the fast path
  // does not do that.
  void ExpectMarkers();
  void CheckForMarkers(std::uint64_t now_ns);
  void CheckForMarkersPeriodically();
  // ProgramRequests::Effects
  int HintsChanged() override;
  int StreamDeadlineChanged(void* stream) override;
  int CheckSession() const override;
  void StreamPrioritiesChanged() override { OrderStreams(); }
  void DeadlinesChanged() override;
  void HoldsChanged() override { PointSummary(); }

  const StubTable stub_;
  const Environment environment_;
  Captures captures_;
  ProgramRequests requests_;
  std::atomic<bool> schedules_streams_;  // relaxed: threads obey what OrderStreams makes of it
  std::mutex order_mutex_;               // serialises OrderStreams
  StreamGate stream_gate_;
  std::atomic<bool> expects_markers_{false};  // written under summary_mutex_
  std::atomic<std::uint64_t> markers_checked_ns_{0};
  std::mutex summary_mutex_;  // orders changes of what the launch path reads; only trackers are locked under it
  StreamTable streams_;
  Trackers trackers_;
  Passthrough passthrough_;
  std::atomic<Session*> session_{nullptr};  // seq_cst where a thread begins to use it: see SessionUse
  MemoryAccount memory_;
  std::atomic<bool> said_refused_{false};
  std::atomic<std::uint64_t> welcome_until_ns_{0};  // of a new session; relaxed: a late view waits a little less
  std::atomic<std::uint64_t> attached_{0};
  std::atomic<std::uint64_t> client_id_{0};  // relaxed, and the next: for display
  std::atomic<int> effective_priority_{0};
  std::atomic<bool> has_given_up_{false};
  std::atomic<std::uint64_t> decision_until_ns_{0};  // relaxed: one launch more or less that counts does no harm
  std::atomic<bool> is_exiting_{false};
  std::atomic<bool> is_forked_{false};
  Agent agent_;
};

}  // namespace xschedd::shim
