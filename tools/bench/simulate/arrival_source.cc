#include "tools/bench/simulate/arrival_source.h"

#include <algorithm>
#include <limits>

namespace xschedd::simulate {

std::uint64_t ArrivalSource::Next() {
  const Arrivals& arrivals = spec_->arrivals;
  switch (arrivals.kind) {
    case ArrivalKind::kPoisson:
      last_ns_ += random_.Exponential(1e9 / arrivals.rate);
      return last_ns_;
    case ArrivalKind::kPeriodic:
      return arrivals.phase_ns + count_++ * arrivals.period_ns;
    case ArrivalKind::kOnOff: {
      if (on_until_ns_ == 0) on_until_ns_ = random_.Exponential(static_cast<double>(arrivals.on_ns));
      last_ns_ += random_.Exponential(1e9 / arrivals.rate);
      // Poisson arrivals are memoryless: an arrival beyond the on-time is moved behind the off-time.
      while (last_ns_ > on_until_ns_) {
        const std::uint64_t off = random_.Exponential(static_cast<double>(arrivals.off_ns));
        last_ns_ += off;
        on_until_ns_ += off + std::max<std::uint64_t>(random_.Exponential(static_cast<double>(arrivals.on_ns)), 1);
      }
      return last_ns_;
    }
    case ArrivalKind::kGiven:
      if (count_ < spec_->given.size()) return spec_->given[count_++].at_ns;
      break;
    case ArrivalKind::kClosed:
    case ArrivalKind::kGivenClosed:
    case ArrivalKind::kSaturating:
      break;
  }
  return std::numeric_limits<std::uint64_t>::max();
}

}  // namespace xschedd::simulate
