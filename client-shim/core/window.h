// How many launches a window of GPU time allows, and how often to drop a marker. Pure arithmetic.
// Thread rule: DurationEstimate, under its device's lock; functions, any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace xschedd::shim {

// Measured GPU time of one launch, as a moving average: a model's kernels differ by orders of magnitude, and the window
// is about their sum.
class DurationEstimate {
 public:
  // `ns` of GPU time for `launches` of them.
  void Add(std::uint64_t ns, std::uint32_t launches) {
    if (launches == 0) return;
    const std::uint64_t each = ns / launches;
    // 1/8 for the newest: follows a change of phase within a few markers, without jumping at one long kernel.
    average_ns_ = has_value_ ? (average_ns_ * 7 + each) / 8 : each;
    has_value_ = true;
  }
  bool HasValue() const { return has_value_; }
  std::uint64_t AverageNs() const { return average_ns_; }

 private:
  std::uint64_t average_ns_ = 0;
  bool has_value_ = false;
};

struct Window {
  std::uint32_t us = 0;     // GPU time in flight; 0: no limit
  std::uint32_t floor = 0;  // launches always allowed
  bool operator==(const Window&) const = default;
};

inline constexpr std::uint32_t kUnlimited = 0;

// Launches that may be in flight; kUnlimited: any number. Before anything is measured, only the floor: the first
// launches after a start are the ones that nobody knows the length of.
inline std::uint32_t LaunchLimit(const Window& window, const DurationEstimate& estimate) {
  if (window.us == 0) return kUnlimited;
  const std::uint64_t floor = std::max<std::uint32_t>(window.floor, 1);
  if (!estimate.HasValue()) return static_cast<std::uint32_t>(floor);
  const std::uint64_t each = std::max<std::uint64_t>(estimate.AverageNs(), 1);
  const std::uint64_t fit = std::uint64_t{window.us} * 1000 / each;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(fit, floor, std::numeric_limits<std::uint32_t>::max()));
}

// Launches from one marker to the next: about half a window, so that when the older of two markers is reached, half of
// the window is free again and the device still has the other half to do. 0: no markers on the launch path.
inline std::uint32_t MarkerSpacing(std::uint32_t limit) {
  return limit == kUnlimited ? 0 : std::max<std::uint32_t>(limit / 2, 1);
}

}  // namespace xschedd::shim
