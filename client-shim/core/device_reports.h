// Reports one device to the daemon: whether it is busy, waiting or idle, the deadline of its work, and the ledger's
// counters. Each state is reported only when it changes.
//
// Thread rule: guarded by its device's lock, so that reports reach the ring in order. relaxed, all counters:
// statistics, which the lock keeps in order among themselves.
#pragma once

#include <cstdint>

#include "common/abi.h"

namespace xschedd::shim {

// Receives a tracker's reports and counters: the session's ledger, or a test's own.
class TrackerSink {
 public:
  virtual ~TrackerSink() = default;
  // Called in order; never blocks. `deadline_ns`: see abi::LedgerDevice.
  virtual void Report(abi::TransitionKind kind, std::uint64_t deadline_ns) = 0;
  // The tracker writes in_flight, window_limit, submitted, completed and gpu_time_ns there. Always the same object.
  virtual abi::LedgerDevice& Counters() = 0;
  // Whether kWaits is to be reported now. Never blocks.
  virtual bool WantsWaits() const = 0;
  // Whether `submitted` must be at most kCountNs old. Never blocks.
  virtual bool WantsCount() const = 0;
};

class DeviceReports {
 public:
  // Starts counting from zero for a new session or, with null, for nobody; then the previous sink gets a last "idle" if
  // the device was busy. `sink` must outlive its use here.
  void Begin(TrackerSink* sink) {
    if (is_busy_ && sink_ != nullptr && sink == nullptr) sink_->Report(abi::TransitionKind::kIdle, 0);
    is_busy_ = is_waiting_ = false;
    launched_ = 0;
    submitted_ = completed_ = deadline_ns_ = 0;
    sink_ = sink;
    ledger_ = sink != nullptr ? &sink->Counters() : &nobodys_;
  }

  // ---- busy, waiting, idle
  bool IsBusy() const { return is_busy_; }
  void SetBusy() {
    is_busy_ = true;
    ReportBusy();
  }
  void SetIdle() {
    is_busy_ = is_waiting_ = false;
    if (sink_ != nullptr) sink_->Report(abi::TransitionKind::kIdle, 0);
  }
  // Whether the host waits for the device, as far as the daemon asks for it. Before a wait is reported, `count` adds
  // the launches that are not counted yet: the daemon reads with it how many there were.
  template <typename Count>
  void SetWaits(bool waits, const Count& count) {
    if (sink_ == nullptr || !is_busy_) return;
    waits = waits && sink_->WantsWaits();
    if (waits == is_waiting_) return;
    if (waits) count();
    is_waiting_ = waits;
    ReportBusy();
  }
  bool WantsCount() const { return sink_ != nullptr && sink_->WantsCount(); }
  // 0: none. `has_work`: a change is reported at once, else with the next report.
  void SetDeadline(std::uint64_t deadline_ns, bool has_work) {
    if (deadline_ns == deadline_ns_) return;
    deadline_ns_ = deadline_ns;
    if (is_busy_ && has_work) ReportBusy();
  }
  bool HasDeadline() const { return deadline_ns_ != 0; }

  // ---- counters
  void AddLaunched(std::uint32_t launches = 1) {
    ledger_->submitted.store(submitted_ += launches, std::memory_order_relaxed);
    ledger_->in_flight.store(launched_ += launches, std::memory_order_relaxed);
  }
  // These two are in the ledger after the next Publish.
  void AddFinished() {
    ++submitted_;
    ++completed_;
  }
  void AddSettled(std::uint32_t launches) {
    launched_ -= launches;
    completed_ += launches;
  }
  std::uint32_t Launched() const { return launched_; }  // not yet settled
  std::uint64_t Submitted() const { return submitted_; }
  void Publish(std::uint64_t gpu_time_ns) {
    ledger_->in_flight.store(launched_, std::memory_order_relaxed);
    ledger_->submitted.store(submitted_, std::memory_order_relaxed);
    // release: whoever reads `completed` first, then `submitted`, never sees more completed than submitted.
    ledger_->completed.store(completed_, std::memory_order_release);
    ledger_->gpu_time_ns.store(gpu_time_ns, std::memory_order_relaxed);
  }
  void PublishLimit(std::uint32_t launches) { ledger_->window_limit.store(launches, std::memory_order_relaxed); }

 private:
  void ReportBusy() {
    if (sink_ != nullptr)
      sink_->Report(is_waiting_ ? abi::TransitionKind::kWaits : abi::TransitionKind::kBusy, deadline_ns_);
  }

  abi::LedgerDevice nobodys_{};  // counters while there is no sink
  TrackerSink* sink_ = nullptr;
  abi::LedgerDevice* ledger_ = &nobodys_;  // never null
  std::uint32_t launched_ = 0;
  std::uint64_t submitted_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t deadline_ns_ = 0;
  bool is_busy_ = false;
  bool is_waiting_ = false;  // only while busy
};

}  // namespace xschedd::shim
