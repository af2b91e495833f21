// Records decisions for people: each client's phases and held time on each device (explain, ps), events, the log,
// metrics, decision times. No decision depends on it. Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>

#include "daemon/policy/benefit.h"
#include "daemon/registry/past_clients.h"
#include "daemon/registry/registry.h"
#include "daemon/scheduler/events.h"
#include "daemon/scheduler/latency.h"
#include "daemon/telemetry/meter.h"

namespace xschedd {

class Recorder {
 public:
  explicit Recorder(EventLog& events) : events_(events) {}

  const LatencyWindow& Latency() const { return latency_; }
  const HistoryPool& Histories() const { return histories_; }
  const PastClients& Past() const { return past_; }
  const Meter& Metrics() const { return meter_; }
  Meter& Metrics() { return meter_; }
  std::uint64_t LateLinesLeftOut() const { return late_lines_left_out_; }

  // False: holds are recorded from now on, but no client is held.
  void SetEnforcing(bool enforces) { enforces_ = enforces; }

  // ---- a client on a device; `attachment` is already in its state from `now_ns` on
  // Records the phase that follows from gate and busy; adds events if it has changed.
  void NotePhase(Attachment& attachment, std::uint64_t now_ns);
  void NoteBusy(Attachment& attachment, std::uint64_t now_ns);
  // It was busy, and has not been heard from lately.
  void NoteSilent(const Attachment& attachment, std::uint64_t now_ns);
  // Work ended after its deadline. False: only counted, because the client is late so often.
  bool NoteLate(Attachment& attachment, std::uint64_t late_ns, std::uint64_t now_ns);
  // A hold begins, if it is busy and none lasts. `blocker` is for whom; null: nobody in particular.
  void BeginHold(Attachment& attachment, const Client* blocker, std::uint64_t now_ns);
  // Does nothing if it is not held.
  void EndHold(Attachment& attachment, std::uint64_t now_ns);

  // ---- decisions
  // The gates were written at `written_ns`.
  void NoteDecision(Device& device, std::uint64_t written_ns);
  // `benefit`: from now on; the group's memory still has the one before.
  void NoteBenefit(const Group& group, const policy::BenefitSlot& benefit, std::uint32_t tolerance_percent,
                   std::uint64_t now_ns);

  // `memory`: from now on; the group still has the one before.
  void NoteJoins(const Group& group, const policy::GroupMemory& memory, std::uint64_t now_ns);
  // `filling`: from now on; the device's memory still has the one before.
  static void NoteFilling(const Device& device, const policy::FillingMemory& filling);

  // ---- twice a second
  // True: call Sample now for each tracked client.
  bool IsSampleDue(std::uint64_t now_ns);
  void Sample(Client& client, std::uint64_t now_ns);

  // ---- ends
  void ClientGone(Client& client, std::uint64_t now_ns);
  void DeviceGone(Device& device) { meter_.Gone(device); }

 private:
  EventLog& events_;
  bool enforces_ = true;
  std::uint64_t sampled_ns_ = 0;
  std::uint64_t late_lines_left_out_ = 0;
  LatencyWindow latency_;
  HistoryPool histories_;
  PastClients past_;
  Meter meter_;
};

}  // namespace xschedd
