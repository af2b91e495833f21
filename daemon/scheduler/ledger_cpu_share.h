// How much of the daemon's one thread a client's ledger may use. While all clients together take less than half a core,
// none is limited. Beyond that, each has a share of that half (the rest is for sessions, administrators and timers),
// which shrinks with the number of clients that report. The ledger of a client that has spent its share is not read
// until the debt is repaid: only its own transitions are seen late. Thread rule: one owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "daemon/registry/processor_share.h"

namespace xschedd {

class LedgerCpuShare {
 public:
  static constexpr double kTotal = 0.5;       // of a core, for all clients
  static constexpr double kMaxShare = 0.25;   // per client
  static constexpr double kMinShare = 0.002;  // per client
  static constexpr double kCreditNs = 4e6;    // for a burst after a quiet time
  static constexpr std::uint64_t kMinPauseNs = 5'000'000;
  static constexpr std::uint64_t kMaxPauseNs = 20'000'000;

  static double ShareOf(std::size_t clients) {
    return std::clamp(kTotal / static_cast<double>(std::max<std::size_t>(clients, 1)), kMinShare, kMaxShare);
  }

  // Serving this client took `spent_ns`.
  void Spend(std::uint64_t spent_ns, double share, std::uint64_t now_ns) {
    account_.SetShare(share);
    account_.Spend(spent_ns, now_ns);
  }

  bool IsSpent(std::uint64_t now_ns) { return account_.DebtNs(now_ns) > 0; }
  // How long paying the debt back takes, within limits.
  std::uint64_t PauseNs(std::uint64_t now_ns) { return std::clamp(account_.DebtNs(now_ns), kMinPauseNs, kMaxPauseNs); }

 private:
  // Debt is limited: one slow decision must not pause a client for seconds.
  ProcessorShare account_{kMaxShare, kCreditNs, kMaxPauseNs};
};

// How many clients reported something in the last second, or in the current one if that is more already.
class ReportingClients {
 public:
  // `last_period`: kept by the caller for each client, 0 at first.
  void Note(std::uint64_t& last_period, std::uint64_t now_ns) {
    const std::uint64_t period = now_ns / 1'000'000'000 + 1;
    if (period != period_) {
      before_ = period == period_ + 1 ? now_ : 0;
      now_ = 0;
      period_ = period;
    }
    if (last_period != period) ++now_;
    last_period = period;
  }
  std::size_t Count() const { return std::max(before_, now_); }

 private:
  std::uint64_t period_ = 0;
  std::size_t before_ = 0;
  std::size_t now_ = 0;
};

}  // namespace xschedd
