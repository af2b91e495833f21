// Keeps the process's time slice (core/interface.h, Vendor::set_time_slice) as the daemon wants it: sets it, checks it
// again each second of work, because the runtime may set its own afterwards, and removes it when it is no longer
// wanted.
//
//   wanted, busy     set at once; read back and set again each kLookNs
//   short, and work on a device has stood still for kStallNs
//                    removed for kLookNs; for twice as long each time this happens again within kCalmNs
//   wanted, idle     stays as it is, and the caller checks each kLookNs, so that a change is seen although no work is
//                    reported; after kRestNs it is removed, and nothing remains to be done
//   not wanted       removed
//
// So an idle process costs ten calls at most, and a slice outlives its reason by a second. Nothing depends on it: each
// failure is a state.
//
// Why work may stand still: a change of context is paid out of the slice, and if it costs more than that, two processes
// that take turns make no progress at all (daemon/policy/slices.h). Its cost depends on device and driver, so a client
// none of whose work ends does not try to find the reason. A kernel that runs for a second looks the same, and loses
// little by it. Thread rule: one thread, the agent's.
#pragma once

#include <array>
#include <cstdint>

#include "client-shim/core/interface.h"
#include "common/abi.h"

namespace xschedd::shim {

class SliceKeeper {
 public:
  using Set = SliceReport (*)(std::uint32_t us);
  static constexpr std::uint64_t kLookNs = 1'000'000'000;
  static constexpr std::uint64_t kRestNs = 10 * kLookNs;
  static constexpr std::uint64_t kStallNs = kLookNs;
  static constexpr std::uint64_t kCalmNs = 60 * kLookNs;
  static constexpr std::uint32_t kMaxDoublings = 12;  // an hour
  static constexpr std::uint32_t kShortUs = 1'000;    // below it is short: no driver's own is
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  // Null: there is no such lever.
  explicit SliceKeeper(Set set) : set_(set) {}

  // What one device has of the process's work, as the ledger says it.
  struct Progress {
    bool in_flight = false;  // some has begun and is not known to have ended
    std::uint64_t completed = 0;
  };
  struct Work {
    bool busy = false;  // on any device
    std::array<Progress, abi::kMaxDevices> devices = {};
  };

  // `wanted_us`: 0, the driver's own. Returns when to call again though nothing has changed; while it is busy that is
  // at least as often as stalls are to be seen.
  std::uint64_t Update(std::uint32_t wanted_us, const Work& work, std::uint64_t now_ns);

  // What has become of what was wanted; Us counts with kInForce.
  abi::SliceState State() const { return state_; }
  std::uint32_t Us() const { return state_ == abi::SliceState::kInForce ? asked_us_ : 0; }
  bool HasLever() const { return set_ != nullptr; }

 private:
  bool StandsStill(const Work& work, std::uint64_t now_ns);
  void Apply(std::uint32_t us, std::uint64_t now_ns);
  std::uint64_t TakeBack(std::uint64_t now_ns);

  const Set set_;
  abi::SliceState state_ = abi::SliceState::kNotAsked;
  std::uint32_t asked_us_ = 0;   // last; 0: nothing since it was taken back
  bool is_set_ = false;          // something may be set that is to be taken back
  int attempts_ = 0;             // to take it back, in a row
  std::uint64_t looked_ns_ = 0;  // when it was asked for last
  std::uint64_t busy_ns_ = 0;    // the last call with work
  struct Moved {
    std::uint64_t completed = 0;
    std::uint64_t at_ns = 0;  // when that changed last, or nothing was in flight
  };
  std::array<Moved, abi::kMaxDevices> moved_ = {};
  std::uint32_t stalls_ = 0;             // in a row
  std::uint64_t withheld_until_ns_ = 0;  // because of the last
};

}  // namespace xschedd::shim
