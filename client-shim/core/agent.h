// The library's own thread: keeps the session, carries messages, and polls markers that no other thread waits for.
//
// It blocks the program's signals, so that they are never handled on it or on the threads that gRPC makes from it. It
// sleeps while there are no messages, no daemon to look for and no unfinished tracked work. Thread rule: HintsChanged,
// QueueChanged, Deliver, BusyReported, DevicesChanged and WorkSubmitted may be called from any thread and never block;
// the rest is the agent's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "client-shim/core/control_messages.h"
#include "client-shim/core/host_descriptor.h"
#include "client-shim/core/session.h"
#include "client-shim/core/session/grpc_stream.h"
#include "client-shim/core/slice_keeper.h"
#include "client-shim/core/state_reports.h"

namespace xschedd::shim {

class Client;

class Agent {
 public:
  // `vendor`: the client's, which is still being constructed.
  explicit Agent(Client* client, const Vendor& vendor) : client_(client), slices_(vendor.set_time_slice) {}

  // Starts the thread. False: the system has none left.
  bool Start();
  // Waits until the first attempt to reach the daemon is over, at most `timeout_ms`.
  void WaitForFirstAttempt(int timeout_ms);

  // The process's hints have changed; a stream, given by its id, or its deadline has. The daemon is told the newest
  // state once it can take it. A new session begins with everything.
  void HintsChanged();
  void QueueChanged(std::uint64_t queue);
  // Tracked work was submitted: the agent watches for its end.
  void WorkSubmitted() {
    // seq_cst: the agent clears the flag and then looks at the trackers once more; the submitter counted its work there
    // before it looks at the flag. One of the two sees the other.
    if (!is_watching_.load(std::memory_order_seq_cst)) StartWatching();
  }
  // A device was reported busy: from here on the agent renews the session.
  void BusyReported();
  // A device was used for the first time.
  void DevicesChanged();
  // A message from the stream of that number. Messages of earlier streams are dropped.
  void Deliver(unsigned stream, IncomingMessage message);
  // Once Client::IsExiting: returns when the agent is not in a call of the runtime, or after a few milliseconds.
  void WaitUntilOutOfRuntime() const;

 private:
  // How long a session is kept after its daemon has gone. A restarted daemon is back much sooner, with the same memory,
  // and finds the levels in it right. Meanwhile gates bind until their lease ends.
  static constexpr std::uint64_t kKeepSessionNs = 3'000'000'000;

  void StartWatching();
  static void* Run(void* self);
  void Loop();
  void HandleInbox();
  void Connect();
  void SendHello(const std::string& token);
  void SendDevices();

  // ---- each does what is due at `now_ns`, and returns when to be called again; kNever: not before something happens
  static constexpr std::uint64_t kNever = DeviceTracker::kNever;
  std::uint64_t DoDue(std::uint64_t now_ns);
  std::uint64_t EndDecisionWait(std::uint64_t now_ns);
  std::uint64_t EndKeptSession(std::uint64_t now_ns);
  std::uint64_t WatchTrackers(std::uint64_t now_ns);
  // Renews the session while something is busy.
  std::uint64_t RenewBusy(std::uint64_t now_ns);
  // Sets the time slice that the board wants. While a slot is busy this comes due with each renewal, so that it causes
  // no wake-up of its own.
  std::uint64_t KeepSlices(std::uint64_t now_ns);
  std::uint64_t SendDueActivity(std::uint64_t now_ns);

  // Gives the process's hardware queues the priority that the daemon wants, once, and reports how many have it. Counts
  // again every second in which the agent is awake, as it is while something is busy: the program may have made more.
  void KeepQueuePriority(std::uint64_t now_ns);
  std::uint64_t TickTrackers(std::uint64_t now_ns);
  // Every call of the runtime on the agent's thread is made in here. None is made once the process exits.
  template <typename Body>
  void InRuntime(Body body) {
    // seq_cst, both: either this thread sees that the process exits, or the exiting thread sees this one in here.
    is_in_runtime_.store(true, std::memory_order_seq_cst);
    if (!IsExiting()) body();
    is_in_runtime_.store(false, std::memory_order_seq_cst);
  }
  bool IsExiting() const;
  void Handle(const IncomingMessage& message);
  bool StartStream(UniqueFd socket);
  void DropSession(const EndMessage& end);
  void EndSession();
  void BackOff();
  void SendChanges();
  void SendActivity(std::uint64_t now_ns);
  // The shortest of the slices wanted on its devices, because a process has one slice for all. 0: none.
  std::uint32_t WantedSliceUs(std::uint64_t now_ns) const;
  void ReportSlices();
  void Sleep(std::uint64_t until_ns);
  void Notify();

  Client* const client_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_notified_ = false;
  bool first_attempt_done_ = false;
  std::condition_variable first_attempt_;
  bool hints_changed_ = false;
  std::unordered_set<std::uint64_t> changed_queues_;
  std::vector<IncomingMessage> inbox_;
  unsigned stream_number_ = 0;

  std::atomic<bool> is_watching_{false};    // seq_cst: see WorkSubmitted
  std::atomic<bool> is_in_runtime_{false};  // seq_cst: see InRuntime
  std::atomic<bool> is_renewing_{false};    // seq_cst: see BusyReported

  // ---- the agent's thread only
  GrpcThread* grpc_thread_ = nullptr;  // from the first connection on
  HostDescriptor eventfd_;             // wakes the daemon; the same number for all sessions
  SessionPool sessions_;
  Session* session_ = nullptr;               // the last one
  std::uint64_t session_kept_until_ns_ = 0;  // without a stream, its gates stay in force until then; 0: not kept
  std::uint64_t fast_retry_until_ns_ = 0;    // until then, attempts to connect do not back off
  std::unique_ptr<GrpcStream> stream_;
  std::vector<std::unique_ptr<GrpcStream>> ended_streams_;
  std::uint64_t hello_sent_ns_ = 0;
  std::uint64_t reported_devices_ = 0;
  StateReports reports_;
  bool hints_due_ = false;  // to be told, and the next: taken from what has changed
  std::unordered_set<std::uint64_t> queues_due_;
  std::uint64_t renewed_ns_ = 0;
  bool was_busy_ = false;  // at the last call of RenewBusy that was due
  SliceKeeper slices_;
  struct SliceInput {
    bool is_busy = false;
    std::uint32_t wanted_us = 0;
    bool operator==(const SliceInput&) const = default;
  };
  SliceInput slice_input_;  // of the last update of slices_
  std::uint64_t slices_due_ns_ = 0;
  bool reported_slices_ = false;
  bool reported_stall_ = false;
  QueuePriority wanted_queue_priority_ = QueuePriority::kProgram;  // by the daemon's last configuration
  QueuePriority set_queue_priority_ = QueuePriority::kProgram;     // in the runtime
  QueuePrioritiesMessage reported_queue_priorities_;               // in this session
  std::uint64_t queue_priority_due_ns_ = 0;
  std::uint64_t next_attempt_ns_ = 0;
  std::uint64_t backoff_ns_ = 0;
  std::uint64_t activity_interval_ns_ = 0;
  std::uint64_t next_activity_ns_ = 0;
  bool has_activity_ = false;
  bool reported_refusal_ = false;
};

}  // namespace xschedd::shim
