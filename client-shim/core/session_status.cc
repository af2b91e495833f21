#include "client-shim/core/session_status.h"

namespace xschedd::shim {

// relaxed, here and below: statistics. acquire, before `submitted` is read: so that it is no less than `completed`.
void AddCounters(Session* session, xschedd_status* status) {
  for (std::uint32_t slot = 0; slot < abi::kMaxDevices; ++slot) {
    const abi::LedgerDevice& device = session->Ledger().Device(slot);
    status->completed += device.completed.load(std::memory_order_acquire);
    status->submitted += device.submitted.load(std::memory_order_relaxed);
    status->held_ns += device.held_ns.load(std::memory_order_relaxed);
    status->passthrough += device.passthrough.load(std::memory_order_relaxed);
    status->gpu_time_ns += device.gpu_time_ns.load(std::memory_order_relaxed);
  }
}

void ReadDevice(Session* session, std::uint32_t slot, std::uint64_t now_ns, xschedd_device_status* status) {
  const std::uint32_t word = session->Board().Word(slot);
  const bool binds = now_ns < session->LeaseUntilNs();
  status->held = binds && (word & abi::kHeld) != 0;
  status->tracked = binds && (word & abi::kFlagMask) != 0;
  status->window_us = session->Board().WindowUs(slot);
  const abi::LedgerDevice& ledger = session->Ledger().Device(slot);
  status->in_flight = ledger.in_flight.load(std::memory_order_relaxed);
  status->window_limit = ledger.window_limit.load(std::memory_order_relaxed);
  status->completed = ledger.completed.load(std::memory_order_acquire);
  status->submitted = ledger.submitted.load(std::memory_order_relaxed);
  status->gpu_time_ns = ledger.gpu_time_ns.load(std::memory_order_relaxed);
  status->held_ns = ledger.held_ns.load(std::memory_order_relaxed);
  status->passthrough = ledger.passthrough.load(std::memory_order_relaxed);
}

}  // namespace xschedd::shim
