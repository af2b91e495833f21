// A window of GPU time: whether a launch may join, and how often a marker is due. Pure arithmetic.
// Thread rule: DurationEstimate, under its device's lock; functions, any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace xschedd::shim {

// The GPU time of a launch, as a moving average over all launches. `ps` uses it to show a window as a number of
// launches.
class DurationEstimate {
 public:
  // `launches` took `ns` of GPU time together.
  void Add(std::uint64_t ns, std::uint32_t launches) {
    if (launches == 0) return;
    const std::uint64_t each = ns / launches;
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
  bool is_guarded = false;  // a more important client is busy, and what is in flight delays it
  bool operator==(const Window&) const = default;
};

// What is in flight: launches, and their weight (WeightNs).
struct InFlight {
  std::uint32_t launches = 0;
  std::uint64_t cost_ns = 0;

  void Add(const InFlight& other) {
    launches += other.launches;
    cost_ns += other.cost_ns;
  }
  void Remove(const InFlight& part) {
    launches -= std::min(launches, part.launches);
    cost_ns -= std::min(cost_ns, part.cost_ns);
  }
};

inline constexpr std::uint32_t kUnlimited = 0;

inline std::uint32_t Floor(const Window& window) {
  return std::max<std::uint32_t>(window.floor, 1);
}

// The weight of a launch in a window: its cost or, if that is unknown, as after a start, the window divided by the
// number of launches that the floor allows.
inline std::uint64_t WeightNs(const Window& window, std::uint64_t cost_ns) {
  return cost_ns != 0 ? cost_ns : std::uint64_t{window.us} * 1000 / Floor(window);
}

// Whether a launch of `cost_ns` (0: unknown) may join what is in flight.
inline bool HasRoom(const Window& window, const InFlight& in_flight, std::uint64_t cost_ns) {
  if (window.us == 0) return true;
  if (cost_ns != 0 && in_flight.cost_ns + cost_ns <= std::uint64_t{window.us} * 1000) return true;
  return in_flight.launches < Floor(window);
}

// Whether a launch on a stream that has nothing in flight may run beside those of other streams, whatever they have in
// flight. The window bounds how long a more important client waits when it becomes busy. A kernel much longer than the
// window, or of unknown length, exceeds that bound anyway; and streams that ran such kernels one after the other would
// stall where they natively run side by side.
inline bool MayRunSideBySide(const Window& window, const InFlight& on_stream, std::uint64_t cost_ns) {
  constexpr std::uint64_t kMuchLonger = 4;
  return !window.is_guarded && on_stream.launches == 0 &&
         (cost_ns == 0 || cost_ns >= kMuchLonger * std::uint64_t{window.us} * 1000);
}

// Launches that fit at the current average, for display. Before anything is measured, the floor.
inline std::uint32_t LaunchLimit(const Window& window, const DurationEstimate& estimate) {
  if (window.us == 0) return kUnlimited;
  const std::uint64_t floor = Floor(window);
  if (!estimate.HasValue()) return static_cast<std::uint32_t>(floor);
  const std::uint64_t each = std::max<std::uint64_t>(estimate.AverageNs(), 1);
  const std::uint64_t fit = std::uint64_t{window.us} * 1000 / each;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(fit, floor, std::numeric_limits<std::uint32_t>::max()));
}

// The most GPU time behind the last marker of a stream, and the longest time since it, with or without a window: the
// daemon needs them to divide shares.
inline constexpr std::uint64_t kMarkerCostNs = 1'000'000;
inline constexpr std::uint64_t kMarkerAgeNs = 2'000'000;

// Whether a marker is due behind launches that cost `cost_ns` together, the last of them `last_ns`. A full window has
// at least two markers, so that the first one makes room while the device is still busy with the rest.
inline bool IsMarkerDueByCost(std::uint32_t window_us, std::uint64_t cost_ns, std::uint64_t last_ns) {
  if (cost_ns >= kMarkerCostNs) return true;
  return window_us != 0 && 2 * cost_ns + last_ns >= std::uint64_t{window_us} * 1000;
}
// The same when the stream's last marker is `age_ns` old.
inline bool IsMarkerDue(std::uint32_t window_us, std::uint64_t cost_ns, std::uint64_t last_ns, std::uint64_t age_ns) {
  return age_ns >= kMarkerAgeNs || IsMarkerDueByCost(window_us, cost_ns, last_ns);
}

}  // namespace xschedd::shim
