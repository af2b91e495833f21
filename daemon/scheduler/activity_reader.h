// Reads what tracked clients report in their ledgers: busy, idle or waiting for the device, deadlines, signs of life.
// Each change is recorded, and queues a decision about the device, now or soon (Gatherer::MayWait). Thread rule: the
// daemon's one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "daemon/registry/client.h"
#include "daemon/scheduler/counts.h"
#include "daemon/scheduler/decision_queue.h"
#include "daemon/scheduler/recorder.h"

namespace xschedd {

class ActivityReader {
 public:
  // A busy client that has not been heard from for this long is silent and counts as idle: three gate leases, and at
  // least kMinBusyLeaseNs, because several renewals (abi::kRenewNs) may be late on an overloaded machine.
  static constexpr std::uint64_t kMinBusyLeaseNs = 6 * abi::kRenewNs;
  static std::uint64_t BusyLeaseNs(std::uint64_t gate_lease_ns) { return std::max(kMinBusyLeaseNs, 3 * gate_lease_ns); }

  ActivityReader(DecisionQueue& queue, Recorder& recorder, SchedulerCounts& counts)
      : queue_(queue), recorder_(recorder), counts_(counts) {}

  void SetBusyLease(std::uint64_t busy_lease_ns) { busy_lease_ns_ = busy_lease_ns; }
  // `action` runs when late work of a client is recorded, which is rare enough to save its state each time.
  void OnLate(std::function<void(const Client&)> action) { on_late_ = std::move(action); }

  // Reads the client's ledger. False: there is more to read, call again soon; true: the client will write the eventfd.
  bool Read(Client& client, std::uint64_t now_ns);
  // Detects that the client has fallen silent, or is heard from again. `reported`: it has just published a record.
  void CheckRenewals(Client& client, bool reported, std::uint64_t now_ns);

  void BeginTracking(Attachment& attachment, std::uint64_t now_ns);
  static void EndTracking(Attachment& attachment);

 private:
  // `is_whole`: the daemon sees a burst that begins from its beginning.
  void ReadLevels(Attachment& attachment, bool is_whole, std::uint64_t now_ns);
  void SetBusy(Attachment& attachment, bool busy, bool is_whole, std::uint64_t now_ns);
  void SetWaits(Attachment& attachment, bool waits, std::uint64_t now_ns);
  void NoteTransition(Attachment& attachment, std::uint64_t now_ns);
  // 0: none, or the client is idle.
  void SetDeadline(Attachment& attachment, std::uint64_t deadline_ns, std::uint64_t now_ns);
  void FallSilent(Client& client, std::uint64_t now_ns);

  DecisionQueue& queue_;
  Recorder& recorder_;
  SchedulerCounts& counts_;
  std::function<void(const Client&)> on_late_;
  std::uint64_t busy_lease_ns_ = BusyLeaseNs(100 * policy::kNsPerMs);
};

}  // namespace xschedd
