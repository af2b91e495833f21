// How much of the daemon's one thread a client may take with what it writes into its ledger, once all together take
// more than half of a core (which is left to everything else: sessions, administrators, timers): a share of a core,
// that is smaller the more clients have something to say. Who has spent its share then is left alone until it is paid
// back; its transitions are seen late, nobody else's are. While the thread has time, nobody is limited. Thread rule:
// one owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "daemon/registry/processor_share.h"

namespace xschedd {

class LedgerCpuShare {
 public:
  static constexpr double kAll = 0.5;      // of a core, for all clients
  static constexpr double kMost = 0.25;    // for one
  static constexpr double kLeast = 0.002;  // for one
  static constexpr double kSaved = 4e6;    // ns: a burst after a quiet time
  static constexpr std::uint64_t kLeastPauseNs = 5'000'000;
  static constexpr std::uint64_t kMostPauseNs = 20'000'000;

  static double ShareOf(std::size_t clients) {
    return std::clamp(kAll / static_cast<double>(std::max<std::size_t>(clients, 1)), kLeast, kMost);
  }

  // The thread was with this client for `spent_ns`.
  void Spend(std::uint64_t spent_ns, double share, std::uint64_t now_ns) {
    account_.SetShare(share);
    account_.Spend(spent_ns, now_ns);
  }

  bool IsSpent(std::uint64_t now_ns) { return account_.DebtNs(now_ns) > 0; }
  // How long it takes until the debt is paid back.
  std::uint64_t PauseNs(std::uint64_t now_ns) {
    return std::clamp(account_.DebtNs(now_ns), kLeastPauseNs, kMostPauseNs);
  }

 private:
  // A debt is limited: one decision that took long must not cost seconds.
  ProcessorShare account_{kMost, kSaved, kMostPauseNs};
};

// How many clients had something to say in the last second, or in the present one if that is more already.
class Speakers {
 public:
  // `last_period`: the speaker's own, 0 at first.
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
