#include "client-shim/core/slice_keeper.h"

#include <algorithm>

namespace xschedd::shim {
namespace {

// How often a driver that does not restore a slice is asked to.
constexpr int kMaxAttempts = 5;

}  // namespace

std::uint64_t SliceKeeper::Update(std::uint32_t wanted_us, const Work& work, std::uint64_t now_ns) {
  const bool is_stalled = IsStalled(work, now_ns);
  if (wanted_us == 0) state_ = abi::SliceState::kNotAsked;
  if (set_ == nullptr) {
    if (wanted_us != 0) state_ = abi::SliceState::kNotHere;
    return kNever;
  }
  if (work.is_busy) last_busy_ns_ = now_ns;
  // An idle process keeps a slice that is set, for a while, but none is set for it.
  const bool needs_none = !work.is_busy && (!is_set_ || now_ns >= last_busy_ns_ + kIdleTimeoutNs);
  if (wanted_us == 0 || needs_none) return Remove(now_ns);
  if (wanted_us < kShortUs) {
    if (is_stalled && is_set_) {
      stalls_ = now_ns < withheld_until_ns_ + kStallMemoryNs ? std::min(stalls_ + 1, kMaxDoublings) : 0;
      withheld_until_ns_ = now_ns + (kCheckIntervalNs << stalls_);
      Remove(now_ns);
      state_ = abi::SliceState::kStalled;
    }
    if (now_ns < withheld_until_ns_) return is_set_ ? Remove(now_ns) : withheld_until_ns_;
  }
  if (wanted_us != asked_us_ || (work.is_busy && now_ns >= checked_ns_ + kCheckIntervalNs)) Apply(wanted_us, now_ns);
  return work.is_busy ? checked_ns_ + kCheckIntervalNs : now_ns + kCheckIntervalNs;
}

bool SliceKeeper::IsStalled(const Work& work, std::uint64_t now_ns) {
  bool any = false;
  for (std::size_t device = 0; device < last_progress_.size(); ++device) {
    const Progress& progress = work.devices[device];
    LastProgress& last = last_progress_[device];
    if (!is_set_ || !progress.has_work || progress.completed != last.completed) last = {progress.completed, now_ns};
    any = any || now_ns >= last.at_ns + kStallNs;
  }
  return any;
}

void SliceKeeper::Apply(std::uint32_t us, std::uint64_t now_ns) {
  const SliceReport report = set_(us);
  asked_us_ = us;
  checked_ns_ = now_ns;
  attempts_ = 0;
  is_set_ = report.groups != 0;
  state_ = report.groups == 0                 ? abi::SliceState::kNotHere
           : report.in_force == report.groups ? abi::SliceState::kInForce
                                              : abi::SliceState::kRefused;
}

std::uint64_t SliceKeeper::Remove(std::uint64_t now_ns) {
  // kNotHere, kRefused and kStalled stay reported while a slice is wanted.
  if (state_ == abi::SliceState::kInForce) state_ = abi::SliceState::kNotAsked;
  asked_us_ = 0;
  if (!is_set_) return kNever;
  const SliceReport report = set_(0);
  is_set_ = report.in_force < report.groups && ++attempts_ < kMaxAttempts;
  return is_set_ ? now_ns + kCheckIntervalNs : kNever;
}

}  // namespace xschedd::shim
