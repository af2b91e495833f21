// The last 4096 decision times, for GetStats. Thread rule: the daemon's one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace xschedd {

class LatencyWindow {
 public:
  static constexpr std::size_t kSamples = 4096;

  void Add(std::uint64_t ns) {
    if (samples_.size() < kSamples) {
      samples_.push_back(ns);
    } else {
      samples_[next_] = ns;
    }
    next_ = (next_ + 1) % kSamples;
  }

  // `fraction`: 0 to 1. Returns 0 while there is no sample.
  std::uint64_t Quantile(double fraction) const {
    if (samples_.empty()) return 0;
    std::vector<std::uint64_t> sorted = samples_;
    const auto place = static_cast<std::size_t>(fraction * static_cast<double>(sorted.size() - 1));
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(place), sorted.end());
    return sorted[place];
  }

 private:
  std::vector<std::uint64_t> samples_;
  std::size_t next_ = 0;
};

}  // namespace xschedd
