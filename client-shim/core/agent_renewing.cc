// What the agent does periodically while the client is busy: it renews the session, and keeps the process's time slice
// and the priority of its hardware queues as the daemon wants them.
#include <algorithm>
#include <bit>

#include "client-shim/core/agent.h"
#include "client-shim/core/client.h"
#include "common/clock.h"

namespace xschedd::shim {
namespace {

// Somewhat shorter than the daemon requires, so that a late wake-up is no lapse.
constexpr std::uint64_t kRenewIntervalNs = abi::kRenewNs * 4 / 5;
// How often hardware queues are counted while the process works.
constexpr std::uint64_t kCountQueuesNs = 1'000'000'000;

}  // namespace

std::uint64_t Agent::RenewBusy(std::uint64_t now_ns) {
  if (!is_renewing_.load(std::memory_order_seq_cst)) return kNever;
  const std::uint64_t due_ns = renewed_ns_ + kRenewIntervalNs;
  if (now_ns < due_ns) return due_ns;
  is_renewing_.store(false, std::memory_order_seq_cst);
  const bool was_stopped = was_busy_ && now_ns > due_ns + abi::kRenewNs;
  // Also for a session that is kept without a stream: the next daemon may take over its memory.
  was_busy_ = session_ != nullptr && session_->IsAlive() && session_->Ledger().IsAnyBusy();
  if (!was_busy_) return kNever;
  is_renewing_.store(true, std::memory_order_seq_cst);
  session_->Ledger().Renew();
  // The daemon may have taken this process for silent. It must count it again at once.
  if (was_stopped) session_->Ledger().WakeDaemon();
  renewed_ns_ = now_ns;
  return now_ns + kRenewIntervalNs;
}

std::uint64_t Agent::KeepSlices(std::uint64_t now_ns) {
  // relaxed: a change that is missed here is seen after the next renewal.
  const bool is_busy = is_renewing_.load(std::memory_order_relaxed);
  const SliceInput input{is_busy, WantedSliceUs(now_ns)};
  if (now_ns < slices_due_ns_ && input == slice_input_) return slices_due_ns_;
  slice_input_ = input;
  slices_due_ns_ = kNever;
  const std::uint64_t slots = session_ != nullptr && session_->IsAlive() ? client_->AttachedDevices() : 0;
  SliceKeeper::Work work{.is_busy = is_busy};
  for (std::uint64_t bits = slots; bits != 0; bits &= bits - 1) {
    const auto slot = static_cast<std::uint32_t>(std::countr_zero(bits));
    const abi::LedgerDevice& device = session_->Ledger().Device(slot);
    // relaxed: this process's own counters; a late value is seen at the next check.
    work.devices[slot] = {device.in_flight.load(std::memory_order_relaxed) != 0,
                          device.completed.load(std::memory_order_relaxed)};
  }
  // It calls the driver, which must not happen once the process exits.
  InRuntime([&] { slices_due_ns_ = slices_.Update(input.wanted_us, work, now_ns); });
  if (is_busy) slices_due_ns_ = std::min(slices_due_ns_, renewed_ns_ + kRenewIntervalNs);
  for (std::uint64_t bits = slots; bits != 0; bits &= bits - 1)
    session_->Ledger().SetSlice(static_cast<std::uint32_t>(std::countr_zero(bits)), slices_.State(), slices_.Us());
  ReportSlices();
  return slices_due_ns_;
}

void Agent::ReportSlices() {
  const abi::SliceState state = slices_.State();
  if (state == abi::SliceState::kStalled && !reported_stall_) {
    reported_stall_ = true;
    Info(
        "time slices: removed for a while, because no work finished in a second with a short one; if several processes "
        "keep this device busy, time_slices = \"off\" in [device] of the daemon's configuration avoids such seconds");
  }
  const bool is_missing = state == abi::SliceState::kNotHere || state == abi::SliceState::kRefused;
  // A vendor that has no time slices is documented, and nothing about this process.
  if (!is_missing || !slices_.HasLever() || reported_slices_) return;
  reported_slices_ = true;
  Info(state == abi::SliceState::kRefused
           ? "time slices: not available: the driver refuses to set them"
           : "time slices: not available: no channel group of this process is known (it is a client of MPS, or this "
             "driver makes them in another way)");
}

void Agent::KeepQueuePriority(std::uint64_t now_ns) {
  const auto set = client_->GetVendor().set_queue_priority;
  if (set == nullptr) return;
  // Not bound to the lease, which is renewed for gates only: without a session, or its daemon, it ends.
  const bool has_daemon = stream_ != nullptr || session_kept_until_ns_ != 0;
  const bool is_valid = has_daemon && session_ != nullptr && session_->IsAlive() && !client_->HasGivenUp();
  const QueuePriority wanted = is_valid ? wanted_queue_priority_ : QueuePriority::kProgram;
  const bool is_set = wanted == set_queue_priority_;
  if (is_set && (wanted == QueuePriority::kProgram || now_ns < queue_priority_due_ns_)) return;
  QueuePriorityReport report{};
  // It calls the driver, which must not happen once the process exits.
  InRuntime([&] { report = set(wanted); });
  set_queue_priority_ = wanted;
  if (const QueuePrioritiesMessage message{wanted, report};
      stream_ != nullptr && message != reported_queue_priorities_) {
    reported_queue_priorities_ = message;
    stream_->Send(message);
  }
  queue_priority_due_ns_ = now_ns + kCountQueuesNs;
}

std::uint32_t Agent::WantedSliceUs(std::uint64_t now_ns) const {
  if (session_ == nullptr || !session_->IsAlive() || client_->HasGivenUp()) return 0;
  // A stopped daemon counts as one that has gone. A restarted one is back sooner, and wants the same.
  if (now_ns >= session_->LeaseUntilNs() + kKeepSessionNs) return 0;
  std::uint32_t shortest = 0;
  for (std::uint64_t bits = client_->AttachedDevices(); bits != 0; bits &= bits - 1) {
    const auto slot = static_cast<std::uint32_t>(std::countr_zero(bits));
    const bool counts = (session_->Board().Word(slot) & abi::kFlagMask) != 0;
    const std::uint32_t us = counts ? session_->Board().SliceUs(slot) : 0;
    if (us != 0 && (shortest == 0 || us < shortest)) shortest = us;
  }
  return shortest;
}

}  // namespace xschedd::shim
