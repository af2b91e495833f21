// How much time is covered by intervals that overlap and arrive in almost any order. Pure arithmetic.
//
// Remembers a bounded number of covered stretches. When there are more, the oldest is dropped, and everything before
// its end counts as covered from then on. Streams that settle alternately need one or two stretches. Thread rule:
// guarded by its owner's lock.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace xschedd::shim {

class IntervalUnion {
 public:
  static constexpr std::size_t kStretches = 32;

  // Covers [start, end), in nanoseconds. Returns how much of it was not covered before.
  std::uint64_t Add(std::uint64_t start, std::uint64_t end) {
    start = std::max(start, floor_);
    if (start >= end) return 0;
    std::size_t first = 0;
    while (first < count_ && stretches_[first].end < start)
      ++first;
    Stretch joined{start, end};
    std::uint64_t known = 0;
    std::size_t last = first;
    for (; last < count_ && stretches_[last].start <= end; ++last) {
      const Stretch& met = stretches_[last];
      known += std::min(end, met.end) - std::max(start, met.start);
      joined = Stretch{std::min(joined.start, met.start), std::max(joined.end, met.end)};
    }
    if (last == first && count_ == kStretches) {
      // The oldest is dropped; if the new one is the oldest, it is.
      if (first == 0) {
        floor_ = end;
        return end - start;
      }
      floor_ = stretches_[0].end;
      Remove(0, 1);
      --first;
      --last;
    }
    if (last == first) {
      std::copy_backward(stretches_.begin() + first, stretches_.begin() + count_, stretches_.begin() + count_ + 1);
      ++count_;
    } else {
      Remove(first + 1, last);
    }
    stretches_[first] = joined;
    return end - start - known;
  }

  void Clear() {
    count_ = 0;
    floor_ = 0;
  }

 private:
  struct Stretch {
    std::uint64_t start, end;
  };
  void Remove(std::size_t from, std::size_t to) {
    std::copy(stretches_.begin() + to, stretches_.begin() + count_, stretches_.begin() + from);
    count_ -= to - from;
  }

  std::array<Stretch, kStretches> stretches_{};  // in order, neither overlapping nor touching
  std::size_t count_ = 0;
  std::uint64_t floor_ = 0;
};

}  // namespace xschedd::shim
