// The library's own thread: keeps the session, carries messages, and polls markers that no other thread waits for.
//
// It blocks all signals, so that the program's are never handled on it or on the threads that gRPC makes from it. It
// sleeps while there are no messages, no session to look for and no unfinished tracked work. Thread rule: Post,
// Deliver, BusyReported and WorkSubmitted may be called from any thread and never block; the rest is the agent's own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "client-shim/core/control_stream.h"
#include "client-shim/core/host_descriptor.h"
#include "client-shim/core/session.h"
#include "client-shim/core/session/grpc_stream.h"
#include "client-shim/core/slice_keeper.h"

namespace xschedd::shim {

class Client;

class Agent {
 public:
  // `vendor` is what the client's vendor will be, which is not there yet.
  explicit Agent(Client* client, const Vendor& vendor) : client_(client), slices_(vendor.set_time_slice) {}

  // Makes the thread. False: the system has none left.
  bool Start();
  // Waits until the first attempt to reach the daemon is over, at most `timeout_ms`.
  void WaitForFirstAttempt(int timeout_ms);

  // Queues a message for the daemon. Bounded: what does not fit is dropped, because the daemon schedules without it.
  // Dropped also while there is no session; a new one is told everything that lasts.
  void Post(OutgoingMessage message);
  // Tracked work was submitted: somebody has to notice its end.
  void WorkSubmitted() {
    // seq_cst: the agent clears the flag and then looks at the trackers once more; the submitter counted its work there
    // before it looks at the flag. One of the two sees the other.
    if (!is_watching_.load(std::memory_order_seq_cst)) StartWatching();
  }
  // A device was reported busy: from here on the daemon has to hear that this process lives.
  void BusyReported();
  // A device was used for the first time.
  void DevicesChanged();
  // What the stream number `stream` brings; of an earlier one, nothing is wanted any more.
  void Deliver(unsigned stream, IncomingMessage message);
  // Once Client::IsExiting: returns when the agent is not in a call of the runtime, or after a few milliseconds.
  void WaitUntilOutOfRuntime() const;

 private:
  // How long a session whose daemon has gone is kept: a daemon that is restarted is back long before, brings the same
  // memory, and finds the levels in it right. Its gates bind meanwhile as far as their lease does.
  static constexpr std::uint64_t kKeptNs = 3'000'000'000;

  void StartWatching();
  static void* Run(void* self);
  void Loop();
  void Connect();
  void Greet(const std::string& token);
  void SendDevices();
  // When to look again; DeviceTracker::kNever: not before WorkSubmitted.
  std::uint64_t Watch(std::uint64_t now_ns);
  // All that calls the runtime on the agent's thread does so in here; nothing does once the process exits.
  template <typename Body>
  void InRuntime(Body body) {
    // seq_cst, both: either we see that the process exits, or the exiting thread sees us in here.
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
  void SendMessages();
  bool IsNews(const OutgoingMessage& message);
  void SendActivity(std::uint64_t now_ns);
  // Renews what is busy, when it is due. When that has to be looked at again; kNever: not before BusyReported.
  std::uint64_t RenewBusy(std::uint64_t now_ns);
  // Sets the time slice that the board wants, when that is due. When it has to be looked at again: with each renewal
  // while a slot is busy, so that it wakes for nothing else.
  std::uint64_t KeepSlices(std::uint64_t now_ns);
  // Of the process: the least of those of its devices, because the lever is one for all. 0: none.
  std::uint32_t WantedSliceUs(std::uint64_t now_ns) const;
  void Sleep(std::uint64_t until_ns);
  void Notify();

  Client* const client_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_notified_ = false;
  bool first_attempt_done_ = false;
  std::condition_variable first_attempt_;
  std::vector<OutgoingMessage> outbox_;
  std::vector<IncomingMessage> inbox_;
  unsigned stream_number_ = 0;

  // seq_cst with the trackers' locks: see WorkSubmitted.
  std::atomic<bool> is_watching_{false};
  std::atomic<bool> is_in_runtime_{false};
  // seq_cst with LedgerWriter::IsAnyBusy: see BusyReported.
  std::atomic<bool> is_renewing_{false};

  // The agent's own.
  GrpcThread* grpc_thread_ = nullptr;  // from the first connection on
  HostDescriptor eventfd_;             // the session's way to wake the daemon, one number for all sessions
  SessionPool sessions_;
  Session* session_ = nullptr;        // the last one
  std::uint64_t kept_until_ns_ = 0;   // its gates stay in force without a stream until then; 0: they do not
  std::uint64_t hurry_until_ns_ = 0;  // attempts follow each other quickly until then
  std::unique_ptr<GrpcStream> stream_;
  std::vector<std::unique_ptr<GrpcStream>> ended_streams_;
  std::uint64_t greeted_ns_ = 0;
  std::uint64_t reported_devices_ = 0;
  std::unordered_set<std::uint64_t> reported_queues_;  // that the daemon was told of in this session
  std::uint64_t renewed_ns_ = 0;
  SliceKeeper slices_;
  std::uint64_t slices_due_ns_ = 0;
  bool slices_busy_ = false;            // when they were last looked at
  std::uint32_t slices_wanted_us_ = 0;  // likewise
  bool reported_slices_ = false;
  bool reported_stall_ = false;
  bool was_busy_ = false;  // when it was last renewed, or looked whether it has to be
  std::uint64_t next_attempt_ns_ = 0;
  std::uint64_t backoff_ns_ = 0;
  std::uint64_t activity_interval_ns_ = 0;
  std::uint64_t next_activity_ns_ = 0;
  bool has_activity_ = false;
  bool reported_refusal_ = false;
};

}  // namespace xschedd::shim
