// Turns what the clients report and what the policy says into gates.
//
// It drains ledgers, keeps who is busy, asks the policy about the devices that were touched, writes the gates that
// changed and wakes their waiters. What people see of that is kept by the Recorder. It has no timers and no sockets of
// its own: SchedulerLoop calls it. Thread rule: the daemon's one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "daemon/policy/decide.h"
#include "daemon/registry/registry.h"
#include "daemon/scheduler/gather.h"
#include "daemon/scheduler/recorder.h"

namespace xschedd {

struct SchedulerCounts {
  std::uint64_t transitions = 0;
  std::uint64_t changes = 0;  // transitions and changes of a deadline
  std::uint64_t decisions = 0;
  std::uint64_t gate_writes = 0;
  std::uint64_t refused_records = 0;  // that no honest client writes
};

class Scheduler {
 public:
  using Clock = std::uint64_t (*)();  // ns; CLOCK_MONOTONIC but for tests

  Scheduler(Registry& registry, EventLog& events, Clock clock);

  // Called when a client's late work is reported, which is rare enough to be saved each time.
  void OnLate(std::function<void(const Client&)> action) { on_late_ = std::move(action); }

  // ---- what changed; each needs a Decide afterwards
  void SetSettings(const policy::Settings& settings);
  // False: what is decided is recorded as ever, and no gate, window or slice is in force. What holding would give
  // cannot be measured then, so nobody is let run beside somebody for that.
  void SetEnforcing(bool enforces);
  bool Enforces() const { return enforces_; }
  // Priority, weight, hold, deadline hint, group or devices: whatever the policy sees of a client. For a client that
  // changes its group, call it before and after.
  void Changed(Client& client);
  // Opens the client's gates for good. Call before Registry::Remove.
  void Leaving(Client& client);
  // Opens all gates and decides nothing, until DecideAgain.
  void OpenAll();
  void DecideAgain();
  // After the first decision about a client whose board is from before a restart: whatever that board still says of
  // other slots, or of slots that nothing has to be decided about, it says what was decided.
  void AlignBoard(Client& client);

  // Reads the client's ledger. False: there is more to read, call again soon; true: the client will write the eventfd.
  bool Serve(Client& client);

  // Decides for all that changed or whose time has come, and writes the gates.
  void Decide();
  // When Decide must be called although nothing changed; policy::kNever: not at all.
  std::uint64_t NextLookNs() const;
  bool HasWork() const { return !dirty_.empty(); }
  // Which part of the decisions about this client's devices is for its own user's clients, 0 to 1: whoever puts many
  // clients, or devices, beside another's must not make that one pay for it. Of what was decided last.
  static double PartOf(const Client& client);

  // Renews the lease of every board with a flag, and looks whose busy has run out; needs a Decide afterwards if there
  // is work. False: there is none, no need to call again for now.
  bool RenewLeases();
  void SetLease(std::uint32_t lease_ms) { lease_ns_ = lease_ms * policy::kNsPerMs; }
  // How long a busy client that is not heard of counts. Several renewals (abi::kRenewNs) may come late on a machine
  // that has no processor to spare, so a few times the gates' lease, and never less than this.
  static constexpr std::uint64_t kShortestBusyLeaseNs = 6 * abi::kRenewNs;
  std::uint64_t BusyLeaseNs() const { return std::max(kShortestBusyLeaseNs, 3 * lease_ns_); }

  const policy::Settings& Settings() const { return settings_; }
  const SchedulerCounts& Counts() const { return counts_; }
  std::uint64_t LastWriteNs() const { return last_write_ns_; }
  const Recorder& Records() const { return recorder_; }
  Recorder& Records() { return recorder_; }

 private:
  void MarkDirty(Device& device);
  void SetNextLook(Device& device, std::uint64_t next_look_ns);
  // What the client's ledger says of a tracked slot.
  // `whole`: as in SetBusy.
  void ReadLevels(Attachment& attachment, bool whole, std::uint64_t now_ns);
  // `whole`: the burst is seen from its beginning.
  void SetBusy(Attachment& attachment, bool busy, bool whole, std::uint64_t now_ns);
  void SetWaits(Attachment& attachment, bool waits, std::uint64_t now_ns);
  void NoteTransition(Attachment& attachment, std::uint64_t now_ns);
  // 0: there is none any more, or the client is idle.
  void SetDeadline(Attachment& attachment, std::uint64_t deadline_ns, std::uint64_t now_ns);
  // Whether the client has been heard of lately. `spoke`: it has published a record just now.
  void LookAtRenewals(Client& client, bool spoke, std::uint64_t now_ns);
  void FallSilent(Client& client, std::uint64_t now_ns);
  void BeginTracking(Attachment& attachment, std::uint64_t now_ns);
  void EndTracking(Attachment& attachment);
  void DecideFrom(Device& start, std::uint64_t now_ns);
  void WriteGates(Cluster& cluster, const policy::Decision& decision, std::uint64_t now_ns);
  void Apply(Attachment& attachment, const policy::Gate& gate, std::uint64_t now_ns);
  void WriteGate(Attachment& attachment, const policy::Gate& gate, std::uint64_t now_ns);
  GateSetting SettingOf(const policy::Gate& gate) const;
  void UpdateLease(Client& client, bool binds_before, bool binds, std::uint64_t now_ns);
  Reason ReasonOf(const policy::Gate& gate);

  Registry& registry_;
  Clock clock_;
  policy::Settings settings_;
  policy::Settings decides_by_;  // the same, but for what needs a gate in force
  std::function<void(const Client&)> on_late_;
  std::uint64_t lease_ns_ = 100 * policy::kNsPerMs;
  Gatherer gatherer_;
  policy::Decider decider_;
  std::vector<Device*> dirty_;
  // When devices must be looked at again; those that need not are not there. A decision costs what it is about, however
  // many devices there are.
  std::set<std::pair<std::uint64_t, Device*>> looks_;
  std::vector<std::uint32_t> changed_;  // of one decision; kept for its memory
  bool all_open_ = false;
  bool enforces_ = true;
  std::uint64_t last_write_ns_ = 0;
  SchedulerCounts counts_;
  Recorder recorder_;
};

}  // namespace xschedd
