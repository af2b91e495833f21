// A histogram of durations: counts by fixed upper bounds, and the sum. An observation costs a short scan and allocates
// nothing. Thread rule: the daemon's one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace xschedd {

class TimeHistogram {
 public:
  static constexpr std::size_t kMaxBounds = 15;

  // `bounds_ns`: ascending, at most kMaxBounds, never freed. Values above the last bound have their own count.
  explicit TimeHistogram(std::span<const std::uint64_t> bounds_ns) : bounds_ns_(bounds_ns) {}

  void Observe(std::uint64_t ns) {
    std::size_t place = 0;
    while (place < bounds_ns_.size() && ns > bounds_ns_[place])
      ++place;
    ++counts_[place];
    sum_ns_ += ns;
  }

  // Adds the observations of `other`, which has the same bounds.
  void Add(const TimeHistogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i)
      counts_[i] += other.counts_[i];
    sum_ns_ += other.sum_ns_;
  }

  std::span<const std::uint64_t> BoundsNs() const { return bounds_ns_; }
  // Not cumulative; the count after the last bound is for everything longer.
  std::uint64_t Count(std::size_t place) const { return counts_[place]; }
  std::uint64_t SumNs() const { return sum_ns_; }

 private:
  std::span<const std::uint64_t> bounds_ns_;
  std::array<std::uint64_t, kMaxBounds + 1> counts_{};
  std::uint64_t sum_ns_ = 0;
};

}  // namespace xschedd
