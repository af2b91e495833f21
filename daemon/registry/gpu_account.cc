#include "daemon/registry/gpu_account.h"

#include <algorithm>

#include "daemon/policy/types.h"

namespace xschedd {
namespace {

// The daemon learns of a burst after it began, so its GPU time may seem too long by this much.
constexpr std::uint64_t kReportDelayNs = 10 * policy::kNsPerMs;

}  // namespace

void GpuAccount::Start(std::uint64_t counter_ns, std::uint64_t now_ns) {
  ran_ns_ = 0;
  counter_ns_ = counter_ns;
  spent_until_ns_ = now_ns;
}

void GpuAccount::Stop() {
  ran_ns_ = 0;
}

void GpuAccount::Busy(std::uint64_t now_ns) {
  spent_until_ns_ = std::max(spent_until_ns_, now_ns - std::min(now_ns, kReportDelayNs));
}

void GpuAccount::Read(std::uint64_t counter_ns, std::uint64_t now_ns) {
  const std::uint64_t claimed = counter_ns - std::min(counter_ns_, counter_ns);
  const std::uint64_t added = std::min(claimed, now_ns - std::min(spent_until_ns_, now_ns));
  counter_ns_ = counter_ns;
  // The counter includes a long kernel only once it ends: wall time that is not claimed yet can still be.
  spent_until_ns_ += added;
  ran_ns_ += added;
}

std::uint64_t GpuAccount::TakeRanNs() {
  const std::uint64_t ran = ran_ns_;
  ran_ns_ = 0;
  return ran;
}

}  // namespace xschedd
