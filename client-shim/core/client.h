// The client of one process: everything behind the stub's slow path. There is one object, made when the library starts
// and never destroyed, because threads of the host may be inside it until the process ends.
//
//   any thread ──► Client (gate, window, tracking) ──► Session (shared memory) ──► daemon
//                     │ posts, never blocks
//                     ▼
//                  Agent (one thread) ──► ControlStream ──► daemon
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
  // The calling thread, by the number that its default stream goes by here, ends.
  void ThreadEnded(std::uint64_t thread);
  ProgramRequests& Requests() { return requests_; }
  int SetStreamDeadline(void* stream, std::uint64_t us) {
    return requests_.SetStreamDeadline(stream, QueueId(KeyOf(ByOneName(stream))), us);
  }
  int ScheduleStreams(bool on);
  int GetStatus(xschedd_status* status);
  int GetDeviceStatus(int device, xschedd_device_status* status);
  // Something here went wrong that should not (memory ran out): scheduling ends for this process.
  void GiveUp();

  // ---- the agent's
  const Vendor& GetVendor() const { return *stub_.vendor; }
  const Environment& GetEnvironment() const { return environment_; }
  const ProgramRequests& Requests() const { return requests_; }
  // A new session: from here on it is the one that threads obey. EndSession: they run freely again.
  void BeginSession(Session* session);
  void EndSession();
  // Until then the daemon's first word on a device is awaited: what is submitted counts as if the device was tracked,
  // or a client's first launch would be known to nobody. 0: nothing is awaited.
  void AwaitWordUntil(std::uint64_t until_ns);
  // How long the daemon takes at most to say what it wants of a device that it has been told of.
  static constexpr std::uint64_t kFirstWordNs = 50'000'000;
  std::uint64_t AwaitsWordUntilNs() const { return word_until_ns_.load(std::memory_order_relaxed); }
  const Session* PublishedSession() const { return session_.load(std::memory_order_relaxed); }
  void SetDescription(std::uint64_t client_id, int effective_priority);
  // What the daemon wants passed through, in addition to the environment's. Threads that wait at a gate ask again.
  void SetPassthrough(const std::vector<std::string>& entries);
  std::uint64_t TickTrackers(std::uint64_t now_ns) const { return trackers_.Tick(now_ns, PublishedSession()); }
  ActivityMessage TakeActivity();
  std::uint64_t AttachedDevices() const { return attached_.load(std::memory_order_relaxed); }
  std::vector<QueueCreatedMessage> LiveQueues() const;
  // The program's exit handlers run, and the runtime is about to be torn down. seq_cst: see Agent::InRuntime.
  bool IsExiting() const { return is_exiting_.load(std::memory_order_seq_cst); }
  bool HasGivenUp() const { return gave_up_.load(std::memory_order_relaxed); }

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
  // Of a device that there is.
  void Attach(int device) {
    // relaxed: a set that only grows.
    if ((attached_.load(std::memory_order_relaxed) >> device & 1) == 0) AttachNew(device);
  }
  void AttachNew(int device);
  // A launch's way, in this order (tracked_launch.cc).
  bool IsCounted(const Session& session, std::uint32_t word, std::uint64_t now_ns) const {
    return AwaitsWordUntilNs() != 0 || ((word & abi::kFlagMask) != 0 && now_ns < session.LeaseUntilNs());
  }
  // What binds at the device's gate: 0 without a session.
  static std::uint32_t GateWord(const Session* session, std::uint32_t slot) {
    return session != nullptr ? session->Board().Word(slot) : 0;
  }
  // The daemon's, as of the gate's word that was read before.
  [[gnu::always_inline]] static Window WindowOf(const Session& session, std::uint32_t slot, std::uint32_t word) {
    const BoardReader& board = session.Board();
    return Window{board.WindowUs(slot), board.WindowFloor(slot), (word & abi::kGuarded) != 0};
  }
  // The same, or that of a stream below others, if it is smaller.
  Window WindowFor(const Session* session, std::uint32_t slot, std::uint32_t word, void* stream) const;
  bool EnterAndWaitForTurn(const Submission& submission, std::uint32_t slot, std::uint64_t now_ns,
                           TrackedLaunch* launch);
  bool WaitForTurn(Session* session, std::uint32_t slot, const Submission& submission);
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
  // From the first launch that is counted until LookForMarkers finds none, also where tracking or the session ends: a
  // query that finds a marker of ours unfinished has to be asked again, which the launch path's own way does not.
  void MayMeetMarkers();
  void LookForMarkers(std::uint64_t now_ns);
  void LookForMarkersNowAndThen();
  // ProgramRequests::Effects
  int Tell(const HintMessage& hint) override;
  int MayTell() const override;
  void StreamPrioritiesChanged() override { OrderStreams(); }
  void DeadlinesChanged() override;
  void HoldsChanged() override { PointSummary(); }

  const StubTable stub_;
  const Environment environment_;
  Captures captures_;
  ProgramRequests requests_;
  std::atomic<bool> schedules_streams_;  // relaxed: OrderStreams makes of it what threads obey
  std::mutex order_mutex_;               // one order of the streams is made after the other
  StreamGate stream_gate_;
  std::atomic<bool> meets_markers_{false};           // written under summary_mutex_
  std::atomic<std::uint64_t> asked_trackers_ns_{0};  // relaxed: one more time is no harm
  std::mutex summary_mutex_;  // orders what the launch path looks at; only trackers are locked under it
  StreamTable streams_;
  Trackers trackers_;
  Passthrough passthrough_;
  std::atomic<Session*> session_{nullptr};
  MemoryAccount memory_;
  std::atomic<bool> said_refused_{false};
  std::atomic<std::uint64_t> welcome_until_ns_{0};  // a new session's; relaxed: a late view waits a little less
  std::atomic<std::uint64_t> attached_{0};
  std::atomic<std::uint64_t> client_id_{0};
  std::atomic<int> effective_priority_{0};
  std::atomic<bool> gave_up_{false};
  std::atomic<std::uint64_t> word_until_ns_{0};  // relaxed: a launch more or less is counted
  std::atomic<bool> is_exiting_{false};
  std::atomic<bool> is_forked_{false};
  Agent agent_;
};

}  // namespace xschedd::shim
