#include "client-shim/core/slice_keeper.h"

#include <algorithm>

namespace xschedd::shim {
namespace {

// A driver that does not give back what it took is not asked for ever.
constexpr int kMaxAttempts = 5;

}  // namespace

std::uint64_t SliceKeeper::Update(std::uint32_t wanted_us, const Work& work, std::uint64_t now_ns) {
  const bool busy = work.busy;
  const bool stands_still = StandsStill(work, now_ns);
  if (wanted_us == 0) state_ = abi::SliceState::kNotAsked;
  if (set_ == nullptr) {
    if (wanted_us != 0) state_ = abi::SliceState::kNotHere;
    return kNever;
  }
  if (busy) busy_ns_ = now_ns;
  // What was not set while there was work is not set for the sake of none.
  const bool rests = !busy && (!is_set_ || now_ns >= busy_ns_ + kRestNs);
  if (wanted_us == 0 || rests) return TakeBack(now_ns);
  if (wanted_us < kShortUs) {
    if (stands_still && is_set_) {
      stalls_ = now_ns < withheld_until_ns_ + kCalmNs ? std::min(stalls_ + 1, kMaxDoublings) : 0;
      withheld_until_ns_ = now_ns + (kLookNs << stalls_);
      TakeBack(now_ns);
      state_ = abi::SliceState::kStalled;
    }
    if (now_ns < withheld_until_ns_) return is_set_ ? TakeBack(now_ns) : withheld_until_ns_;
  }
  if (wanted_us != asked_us_ || (busy && now_ns >= looked_ns_ + kLookNs)) Apply(wanted_us, now_ns);
  return busy ? looked_ns_ + kLookNs : now_ns + kLookNs;
}

bool SliceKeeper::StandsStill(const Work& work, std::uint64_t now_ns) {
  bool any = false;
  for (std::size_t device = 0; device < moved_.size(); ++device) {
    const Progress& progress = work.devices[device];
    Moved& moved = moved_[device];
    if (!is_set_ || !progress.in_flight || progress.completed != moved.completed) moved = {progress.completed, now_ns};
    any = any || now_ns >= moved.at_ns + kStallNs;
  }
  return any;
}

void SliceKeeper::Apply(std::uint32_t us, std::uint64_t now_ns) {
  const SliceReport report = set_(us);
  asked_us_ = us;
  looked_ns_ = now_ns;
  attempts_ = 0;
  is_set_ = report.groups != 0;
  state_ = report.groups == 0                 ? abi::SliceState::kNotHere
           : report.in_force == report.groups ? abi::SliceState::kInForce
                                              : abi::SliceState::kRefused;
}

std::uint64_t SliceKeeper::TakeBack(std::uint64_t now_ns) {
  // That there is no lever stays known while one is wanted.
  if (state_ == abi::SliceState::kInForce) state_ = abi::SliceState::kNotAsked;
  asked_us_ = 0;
  if (!is_set_) return kNever;
  const SliceReport report = set_(0);
  is_set_ = report.in_force < report.groups && ++attempts_ < kMaxAttempts;
  return is_set_ ? now_ns + kLookNs : kNever;
}

}  // namespace xschedd::shim
