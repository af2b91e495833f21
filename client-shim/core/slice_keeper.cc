#include "client-shim/core/slice_keeper.h"

namespace xschedd::shim {
namespace {

// A driver that does not give back what it took is not asked for ever.
constexpr int kMostAttempts = 5;

}  // namespace

std::uint64_t SliceKeeper::Look(std::uint32_t wanted_us, bool busy, std::uint64_t now_ns) {
  if (wanted_us == 0) state_ = abi::SliceState::kNotAsked;
  if (set_ == nullptr) {
    if (wanted_us != 0) state_ = abi::SliceState::kNotHere;
    return kNever;
  }
  if (busy) busy_ns_ = now_ns;
  // What was not set while there was work is not set for the sake of none.
  const bool rests = !busy && (!is_set_ || now_ns >= busy_ns_ + kRestNs);
  if (wanted_us == 0 || rests) return TakeBack(now_ns);
  if (wanted_us != asked_us_ || (busy && now_ns >= looked_ns_ + kLookNs)) Apply(wanted_us, now_ns);
  return busy ? looked_ns_ + kLookNs : now_ns + kLookNs;
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
  is_set_ = report.in_force < report.groups && ++attempts_ < kMostAttempts;
  return is_set_ ? now_ns + kLookNs : kNever;
}

}  // namespace xschedd::shim
