// The agent's part of what is done from time to time while the client is busy: its session is renewed, and the
// process's time slice is kept as the board wants it.
#include <algorithm>
#include <bit>

#include "client-shim/core/agent.h"
#include "client-shim/core/client.h"
#include "common/clock.h"

namespace xschedd::shim {
namespace {

// How often a busy session is renewed: some earlier than the daemon must hear of it.
constexpr std::uint64_t kRenewEachNs = abi::kRenewNs * 4 / 5;
constexpr std::uint64_t kNever = DeviceTracker::kNever;

}  // namespace

std::uint64_t Agent::RenewBusy(std::uint64_t now_ns) {
  if (!is_renewing_.load(std::memory_order_seq_cst)) return kNever;
  const std::uint64_t due_ns = renewed_ns_ + kRenewEachNs;
  if (now_ns < due_ns) return due_ns;
  is_renewing_.store(false, std::memory_order_seq_cst);
  // Also where the session is kept without a stream: its memory may be the next daemon's.
  const bool stood_still = was_busy_ && now_ns > due_ns + abi::kRenewNs;
  was_busy_ = session_ != nullptr && session_->IsAlive() && session_->Ledger().IsAnyBusy();
  if (!was_busy_) return kNever;
  is_renewing_.store(true, std::memory_order_seq_cst);
  session_->Ledger().Renew();
  // The daemon may have given this process up, and is to count it again at once.
  if (stood_still) session_->Ledger().WakeDaemon();
  renewed_ns_ = now_ns;
  return now_ns + kRenewEachNs;
}

std::uint64_t Agent::KeepSlices(std::uint64_t now_ns) {
  const bool busy = is_renewing_.load(std::memory_order_relaxed);
  const std::uint32_t wanted_us = WantedSliceUs(now_ns);
  if (now_ns < slices_due_ns_ && busy == slices_busy_ && wanted_us == slices_wanted_us_) return slices_due_ns_;
  slices_busy_ = busy;
  slices_wanted_us_ = wanted_us;
  slices_due_ns_ = kNever;
  const std::uint64_t slots = session_ != nullptr && session_->IsAlive() ? client_->AttachedDevices() : 0;
  SliceKeeper::Work work{.busy = busy};
  for (std::uint64_t left = slots; left != 0; left &= left - 1) {
    const auto slot = static_cast<std::uint32_t>(std::countr_zero(left));
    const abi::LedgerDevice& device = session_->Ledger().Device(slot);
    // relaxed: this process's own counts, and one that is behind is seen at the next look.
    work.devices[slot] = {device.in_flight.load(std::memory_order_relaxed) != 0,
                          device.completed.load(std::memory_order_relaxed)};
  }
  // What it calls ends with the runtime.
  InRuntime([&] { slices_due_ns_ = slices_.Update(wanted_us, work, now_ns); });
  if (busy) slices_due_ns_ = std::min(slices_due_ns_, renewed_ns_ + kRenewEachNs);
  for (std::uint64_t left = slots; left != 0; left &= left - 1)
    session_->Ledger().SetSlice(static_cast<std::uint32_t>(std::countr_zero(left)), slices_.State(), slices_.Us());
  if (slices_.State() == abi::SliceState::kStalled && !reported_stall_) {
    reported_stall_ = true;
    Info(
        "time slices: withheld for a while: no work ended for a second with a short one; if the device is busy with "
        "several processes, time_slices = \"off\" in the daemon's [device] ends these seconds");
  }
  const bool is_missing = slices_.State() == abi::SliceState::kNotHere || slices_.State() == abi::SliceState::kRefused;
  // That the vendor has none is in its documents, and no news of this process.
  if (is_missing && slices_.HasLever() && !reported_slices_) {
    reported_slices_ = true;
    Info(slices_.State() == abi::SliceState::kRefused
             ? "time slices: not there: the driver refuses them"
             : "time slices: not there: no channel group of this process is known (a client of MPS, or a driver that "
               "makes them in another way)");
  }
  return slices_due_ns_;
}

std::uint32_t Agent::WantedSliceUs(std::uint64_t now_ns) const {
  if (session_ == nullptr || !session_->IsAlive() || client_->HasGivenUp()) return 0;
  // Of a daemon that is stopped, as of one that has gone. One that is restarted is back sooner, and wants the same.
  if (now_ns >= session_->LeaseUntilNs() + kKeptNs) return 0;
  std::uint32_t least = 0;
  for (std::uint64_t left = client_->AttachedDevices(); left != 0; left &= left - 1) {
    const auto slot = static_cast<std::uint32_t>(std::countr_zero(left));
    const bool counts = (session_->Board().Word(slot) & abi::kFlagMask) != 0;
    const std::uint32_t us = counts ? session_->Board().SliceUs(slot) : 0;
    if (us != 0 && (least == 0 || us < least)) least = us;
  }
  return least;
}

}  // namespace xschedd::shim
