// Records decisions for people: phases and held time of each client on each device (explain, ps), events, the log,
// metrics, how long decisions take. No decision depends on it. Thread rule: the daemon's one thread.
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

  // False: holds are recorded from now on, but nobody is held.
  void SetEnforcing(bool enforces) { enforces_ = enforces; }

  // ---- a client on a device; `attachment` says already what is so from `now_ns` on
  // Enters the phase that gate and busy give into the history; adds events if it has changed.
  void NotePhase(Attachment& attachment, std::uint64_t now_ns);
  void NoteBusy(Attachment& attachment, std::uint64_t now_ns);
  // It is busy, and has not been heard of lately.
  void NoteSilent(const Attachment& attachment, std::uint64_t now_ns);
  // Work was done after its deadline. False: the client has been late so often that it was only counted.
  bool NoteLate(Attachment& attachment, std::uint64_t late_ns, std::uint64_t now_ns);
  // Does nothing if it is not held.
  void EndHold(Attachment& attachment, std::uint64_t now_ns);

  // ---- decisions
  // The gates are written.
  void NoteDecision(Device& device, std::uint64_t written_ns);
  // `after`: the benefit that is known from now on; the group's own memory still has the one before.
  void NoteBenefit(const Group& group, const policy::BenefitMemory& after, std::uint32_t tolerance_percent,
                   std::uint64_t now_ns);

  // ---- twice a second
  // True: Sample is to be called now for each client that is tracked.
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
