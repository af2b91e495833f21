// Asks the policy about devices where something changed, and puts the decided gates into force. The ActivityReader
// reads reports, the GateWriter writes gates, and the Recorder keeps what people see of both. SchedulerLoop calls it:
// it has no timers or sockets of its own. Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "daemon/policy/decide.h"
#include "daemon/registry/registry.h"
#include "daemon/scheduler/activity_reader.h"
#include "daemon/scheduler/counts.h"
#include "daemon/scheduler/decision_queue.h"
#include "daemon/scheduler/gate_writer.h"
#include "daemon/scheduler/gather.h"
#include "daemon/scheduler/recorder.h"

namespace xschedd {

class Scheduler {
 public:
  using Clock = std::uint64_t (*)();  // ns; CLOCK_MONOTONIC but for tests

  Scheduler(Registry& registry, EventLog& events, Clock clock);

  void OnLate(std::function<void(const Client&)> action) { activity_.OnLate(std::move(action)); }

  // ---- what changed; each needs a Decide afterwards
  void SetSettings(const policy::Settings& settings);
  // False: decisions are recorded as usual, but no hold, window or slice is in force. The benefit of holding cannot be
  // measured then, so no decision lets a client run beside a more important one.
  void SetEnforcing(bool enforces);
  bool Enforces() const { return gates_.Enforces(); }
  // Something that the policy uses: the client's priority, weight, hold, latency, deadline hint, group or devices. When
  // the group changes, call it before and after.
  void Changed(Client& client);
  // Opens the client's gates for good. Call before Registry::Remove.
  void Remove(Client& client);
  // Opens all gates and decides nothing, until ResumeDeciding.
  void OpenAll();
  void ResumeDeciding();
  // Call it after the first decision about a client whose board predates a restart: the board may have gates in slots
  // without a decision.
  void AlignBoard(Client& client) { gates_.Align(client); }

  // Reads the client's ledger. False: there is more to read, call again soon; true: the client will write the eventfd.
  bool ReadActivity(Client& client) { return activity_.Read(client, clock_()); }

  // Decides wherever something changed, and at one device where it is due, and writes the gates. Others may still be
  // due.
  void Decide();
  // When Decide must be called although HasWork says no; policy::kNever: not at all.
  std::uint64_t NextDueNs() const { return all_open_ ? policy::kNever : queue_.NextDueNs(); }
  bool HasWork() const { return !queue_.IsEmpty(); }
  // The part (0 to 1) of the last decisions about this client's devices that was about its own user's clients: a user
  // with many clients or devices must not make another pay for them.
  static double DecisionShareOf(const Client& client);

  // Renews the lease of every board with a binding gate, and finds silent clients; needs a Decide afterwards if there
  // is work. False: no lease was needed; no need to call again for now.
  bool RenewLeases();
  void SetLease(std::uint32_t lease_ms);
  std::uint64_t BusyLeaseNs() const { return ActivityReader::BusyLeaseNs(gates_.LeaseNs()); }

  const policy::Settings& Settings() const { return settings_; }
  const SchedulerCounts& Counts() const { return counts_; }
  std::uint64_t LastWriteNs() const { return last_write_ns_; }
  const Recorder& Records() const { return recorder_; }
  Recorder& Records() { return recorder_; }

 private:
  void DecideCluster(Device& start, std::uint64_t now_ns);
  void KeepMemory(Cluster& cluster, const policy::Decision& decision, std::uint64_t now_ns);
  void WriteGates(Cluster& cluster, const policy::Decision& decision, std::uint64_t now_ns);
  void NoteGates(Cluster& cluster, const policy::Decision& decision, std::uint64_t now_ns);
  void NoteGate(Attachment& attachment, const policy::Gate& before, std::uint64_t now_ns);
  // For whom it is shut; null: open, or for nobody in particular.
  const Client* BlockerOf(const policy::Gate& gate);
  Reason ReasonOf(const policy::Gate& gate);

  Registry& registry_;
  Clock clock_;
  policy::Settings settings_;
  policy::Settings decides_by_;  // settings_ without what needs gates in force
  SchedulerCounts counts_;
  DecisionQueue queue_;
  Recorder recorder_;
  ActivityReader activity_{queue_, recorder_, counts_};
  GateWriter gates_{counts_};
  Gatherer gatherer_;
  policy::Decider decider_;
  std::vector<std::uint32_t> to_note_;  // of one decision; kept for its memory
  bool all_open_ = false;
  std::uint64_t last_write_ns_ = 0;
};

}  // namespace xschedd
