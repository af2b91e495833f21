// One time base for all markers of a device. The runtime only reports the time between two markers, as a float in
// milliseconds. Measured from an origin that moves every half second, it is exact to some 30 ns.
// Thread rule: one thread at a time (Measuring). TimeOf calls the runtime.
#pragma once

#include <cstdint>
#include <optional>

#include "client-shim/core/interface.h"

namespace xschedd::shim {

class MarkerClock {
 public:
  explicit MarkerClock(const Vendor* vendor) : vendor_(vendor) {}

  // The time of a marker that is done, in nanoseconds of this clock. Without a value: unknown.
  std::optional<std::uint64_t> TimeOf(void* marker) {
    if (origin_ == nullptr) return std::nullopt;
    if (marker == origin_) return origin_ns_;
    std::int64_t ns = 0;
    if (!vendor_->elapsed_ns(origin_, marker, &ns)) return std::nullopt;
    return origin_ns_ + static_cast<std::uint64_t>(ns);
  }
  // Whether a marker of this time should become the origin.
  bool WantsOrigin(std::optional<std::uint64_t> time_ns) const {
    return origin_ == nullptr || (time_ns && *time_ns > origin_ns_ && *time_ns - origin_ns_ > kMoveNs);
  }
  // Makes `marker` the origin, and returns the one before it, or null. The first origin gets a time that leaves room
  // for markers before it.
  void* MoveOrigin(void* marker, std::optional<std::uint64_t> time_ns) {
    void* before = origin_;
    origin_ = marker;
    origin_ns_ = time_ns.value_or(kFirstNs);
    return before;
  }
  // The markers of the device are gone.
  void Forget() { origin_ = nullptr; }

 private:
  static constexpr std::uint64_t kFirstNs = std::uint64_t{1} << 50;
  static constexpr std::uint64_t kMoveNs = 500'000'000;

  const Vendor* vendor_;
  void* origin_ = nullptr;
  std::uint64_t origin_ns_ = 0;
};

}  // namespace xschedd::shim
