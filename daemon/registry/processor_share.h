// A share of processor time: unused time is saved up to a limit, and overspending is a debt that time repays. Thread
// rule: one owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace xschedd {

class ProcessorShare {
 public:
  // `share`: fraction of one processor. `most_saved_ns`: limit of unused time.
  // `longest_debt_ns`: limits a debt by its repayment time.
  ProcessorShare(double share, double most_saved_ns, double longest_debt_ns = std::numeric_limits<double>::infinity())
      : share_(share), most_saved_(most_saved_ns), longest_debt_(longest_debt_ns), saved_(most_saved_ns) {}

  // The new share already applies to the time since the last call.
  void SetShare(double share) { share_ = share; }

  void Spend(std::uint64_t cost_ns, std::uint64_t now_ns) {
    const auto passed = static_cast<double>(now_ns - std::min(last_ns_, now_ns));
    if (last_ns_ != 0) saved_ = std::min(most_saved_, saved_ + passed * share_);
    last_ns_ = now_ns;
    saved_ = std::max(saved_ - static_cast<double>(cost_ns), -share_ * longest_debt_);
  }
  // Time until the debt is repaid; 0: no debt.
  std::uint64_t DebtNs(std::uint64_t now_ns) {
    Spend(0, now_ns);
    return saved_ >= 0 ? 0 : static_cast<std::uint64_t>(-saved_ / share_) + 1;
  }

 private:
  double share_;
  double most_saved_;
  double longest_debt_;
  double saved_;
  std::uint64_t last_ns_ = 0;
};

}  // namespace xschedd
