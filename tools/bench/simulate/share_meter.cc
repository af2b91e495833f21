#include "tools/bench/simulate/share_meter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace xschedd::simulate {
namespace {

constexpr std::uint64_t kBinNs = 10'000'000;
constexpr std::size_t kSecond = 100;  // bins

}  // namespace

ShareMeter::ShareMeter(std::vector<double> due, std::uint64_t length_ns)
    : bins_(length_ns / kBinNs), due_(std::move(due)), ran_ns_(bins_ * due_.size()) {}

void ShareMeter::Add(std::uint32_t class_index, std::uint64_t start_ns, std::uint64_t end_ns) {
  while (start_ns < end_ns) {
    const std::size_t bin = start_ns / kBinNs;
    if (bin >= bins_) return;
    const std::uint64_t until = std::min(end_ns, (bin + 1) * kBinNs);
    ran_ns_[bin * due_.size() + class_index] += static_cast<std::uint32_t>(until - start_ns);
    start_ns = until;
  }
}

double ShareMeter::WorstError(std::uint32_t class_index) const {
  if (bins_ < 2 * kSecond) return std::numeric_limits<double>::quiet_NaN();
  double worst = 0;
  std::uint64_t own = 0;
  std::uint64_t all = 0;
  for (std::size_t bin = kSecond; bin < bins_; ++bin) {
    const auto add = [&](std::size_t which, std::uint64_t sign) {
      own += sign * ran_ns_[which * due_.size() + class_index];
      for (std::size_t i = 0; i < due_.size(); ++i)
        all += sign * ran_ns_[which * due_.size() + i];
    };
    add(bin, 1);
    if (bin < 2 * kSecond - 1) continue;
    if (bin >= 2 * kSecond) add(bin - kSecond, ~std::uint64_t{0});
    if (all == 0) continue;
    const double share = static_cast<double>(own) / static_cast<double>(all);
    worst = std::max(worst, std::fabs(share - due_[class_index]) * 100);
  }
  return worst;
}

}  // namespace xschedd::simulate
