// Keeps the process's time slice (core/interface.h, Vendor::set_time_slice) as the daemon wants it. Sets it, checks it
// every second of work, because the runtime may set its own, and removes it when it is no longer wanted.
//
//   wanted, busy     set at once; read back, and set again if needed, every kCheckIntervalNs
//   short, and no work on a device has finished for kStallNs
//                    removed for kCheckIntervalNs; for twice as long each time this recurs within kStallMemoryNs
//   wanted, idle     stays as it is; the caller calls every kCheckIntervalNs, so that a change is seen although no work
//                    is reported; removed after kIdleTimeoutNs, and then nothing is left to do
//   not wanted       removed
//
// So an idle process costs at most ten calls, and a slice outlives its reason by at most a second. Nothing depends on a
// slice: each failure is a state.
//
// Why work may stall: context switches are paid out of the slice. If one costs more than a slice, two processes that
// take turns make no progress at all (daemon/policy/slices.h). The cost depends on device and driver, so a client whose
// work does not finish removes the slice without looking for the reason. A kernel that runs for a second looks the
// same, and loses little by it. Thread rule: one thread, the agent's.
#pragma once

#include <array>
#include <cstdint>

#include "client-shim/core/interface.h"
#include "common/abi.h"

namespace xschedd::shim {

class SliceKeeper {
 public:
  using Set = SliceReport (*)(std::uint32_t us);
  static constexpr std::uint64_t kCheckIntervalNs = 1'000'000'000;
  static constexpr std::uint64_t kIdleTimeoutNs = 10 * kCheckIntervalNs;
  static constexpr std::uint64_t kStallNs = kCheckIntervalNs;
  static constexpr std::uint64_t kStallMemoryNs = 60 * kCheckIntervalNs;
  static constexpr std::uint32_t kMaxDoublings = 12;  // an hour
  static constexpr std::uint32_t kShortUs = 1'000;    // below it is short: no driver's own is
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  // Null: there is no such lever.
  explicit SliceKeeper(Set set) : set_(set) {}

  // The process's work on one device, from the ledger.
  struct Progress {
    bool has_work = false;  // some is not known to have finished
    std::uint64_t completed = 0;
  };
  struct Work {
    bool is_busy = false;  // on any device
    std::array<Progress, abi::kMaxDevices> devices = {};
  };

  // `wanted_us`: 0: the driver's own. Returns when to call again although nothing has changed. To see stalls in time,
  // the caller calls more often than that while the process is busy.
  std::uint64_t Update(std::uint32_t wanted_us, const Work& work, std::uint64_t now_ns);

  // What has become of the wanted slice, and its length; 0: not in force.
  abi::SliceState State() const { return state_; }
  std::uint32_t Us() const { return state_ == abi::SliceState::kInForce ? asked_us_ : 0; }
  bool HasLever() const { return set_ != nullptr; }

 private:
  bool IsStalled(const Work& work, std::uint64_t now_ns);
  void Apply(std::uint32_t us, std::uint64_t now_ns);
  std::uint64_t Remove(std::uint64_t now_ns);

  const Set set_;
  abi::SliceState state_ = abi::SliceState::kNotAsked;
  std::uint32_t asked_us_ = 0;      // last set; 0: removed
  bool is_set_ = false;             // a slice may be set, and must be removed some time
  int attempts_ = 0;                // to remove it, in a row
  std::uint64_t checked_ns_ = 0;    // when it was last set or read back
  std::uint64_t last_busy_ns_ = 0;  // the last call with work
  struct LastProgress {
    std::uint64_t completed = 0;
    std::uint64_t at_ns = 0;  // when that last changed, or there was no work
  };
  std::array<LastProgress, abi::kMaxDevices> last_progress_ = {};
  std::uint32_t stalls_ = 0;             // in a row
  std::uint64_t withheld_until_ns_ = 0;  // because of the last stall
};

}  // namespace xschedd::shim
