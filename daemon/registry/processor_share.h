// A share of processor time with something saved up, and a debt that is paid back. Thread rule: one owner.
#pragma once

#include <algorithm>
#include <cstdint>

namespace xschedd {

class ProcessorShare {
 public:
  ProcessorShare(double share, double most_saved_ns)
      : share_(share), most_saved_(most_saved_ns), saved_(most_saved_ns) {}

  void Spend(std::uint64_t cost_ns, std::uint64_t now_ns) {
    const auto passed = static_cast<double>(now_ns - std::min(last_ns_, now_ns));
    if (last_ns_ != 0) saved_ = std::min(most_saved_, saved_ + passed * share_);
    last_ns_ = now_ns;
    saved_ -= static_cast<double>(cost_ns);
  }
  // Until the debt is paid back, in ns; 0: there is none.
  std::uint64_t DebtNs(std::uint64_t now_ns) {
    Spend(0, now_ns);
    return saved_ >= 0 ? 0 : static_cast<std::uint64_t>(-saved_ / share_) + 1;
  }

 private:
  double share_;
  double most_saved_;
  double saved_;
  std::uint64_t last_ns_ = 0;
};

}  // namespace xschedd
