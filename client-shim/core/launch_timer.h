// Finds the device's time stamps of a timed launch among all stamps that the runtime reads.
//
// A launch is timed by giving it a stop event. The runtime only reports the time between two events' ends, which
// includes the wait for other processes' kernels. But it reads start and end of each such kernel from the layer below,
// on whatever thread notices the completion, and the stub listens there (Vendor::next_stamp). A stamp is identified by
// its end, which is that of the marker behind the launch. The clocks of markers and stamps differ by a constant offset,
// which is found from launches that fit together and corrected with each match.
// Thread rule: guarded by its device's lock.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "client-shim/core/interface.h"
#include "client-shim/core/launch_mix.h"

namespace xschedd::shim {

class LaunchTimer {
 public:
  // False for good once stamps do not come or do not fit.
  bool IsUsable() const { return failures_ < kMaxFailures; }

  // A timed launch of `key` ended at `end_ns` of the marker clock, and took at most `max_ns`.
  void Expect(LaunchKey key, std::uint64_t end_ns, std::uint64_t max_ns) {
    if (expected_count_ == kMaxExpected) {
      ++failures_;
      std::copy(expected_.begin() + 1, expected_.end(), expected_.begin());
      --expected_count_;
    }
    expected_[expected_count_++] = Expected{key, end_ns, max_ns, 0};
  }

  // Calls found(key, ns) for each expected launch whose stamp has come. Returns the time of the newest launch; 0: its
  // stamp has not come.
  template <typename Found>
  std::uint64_t Match(const Vendor& vendor, Found found) {
    Stamp stamp;
    while (vendor.next_stamp != nullptr && vendor.next_stamp(&cursor_, &stamp)) {
      stamps_[stamp_count_++ % kStamps] = stamp;
    }
    if (expected_count_ == 0) return 0;
    if (!has_offset_ && !FindOffset()) {
      GiveUpOld();
      return 0;
    }
    std::uint64_t newest = 0;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < expected_count_; ++i) {
      Expected& expected = expected_[i];
      const Stamp* match = StampAt(expected.end_ns + offset_);
      newest = 0;
      if (match == nullptr) {
        if (++expected.tries < kTries) {
          expected_[kept++] = expected;
        } else {
          // If several in a row have no stamp, the offset is wrong.
          ++failures_;
          if (++misses_ >= kMisses) has_offset_ = false;
        }
        continue;
      }
      const std::uint64_t ns = match->end_ns - match->start_ns;
      if (ns > expected.max_ns + kSlackNs) {
        ++failures_;
        if (++misses_ >= kMisses) has_offset_ = false;
        continue;
      }
      offset_ = match->end_ns - expected.end_ns;
      misses_ = 0;
      failures_ = failures_ > 0 ? failures_ - 1 : 0;
      found(expected.key, ns);
      newest = ns;
    }
    expected_count_ = kept;
    return newest;
  }

  // The markers' time base is a new one.
  void Forget() {
    expected_count_ = 0;
    has_offset_ = false;
  }

 private:
  static constexpr std::size_t kMaxExpected = 16;
  static constexpr std::size_t kStamps = 64;
  static constexpr std::uint32_t kTries = 200;
  static constexpr std::uint32_t kMisses = 4;
  static constexpr std::uint32_t kMaxFailures = 64;
  static constexpr std::uint64_t kSlackNs = 3'000;  // a marker ends a little after the kernel before it
  static constexpr std::size_t kMinMatches = 2;     // launches that an offset must fit

  struct Expected {
    LaunchKey key;
    std::uint64_t end_ns;
    std::uint64_t max_ns;
    std::uint32_t tries;
  };

  // The stamp that ends nearest to `end_ns` (modulo 2^64: the offset may be negative), if one is near enough.
  const Stamp* StampAt(std::uint64_t end_ns) const {
    const Stamp* nearest = nullptr;
    std::uint64_t least = kSlackNs;
    for (std::size_t i = 0; i < std::min(stamp_count_, kStamps); ++i) {
      const std::uint64_t distance = Distance(stamps_[i].end_ns, end_ns);
      if (distance > least) continue;
      least = distance;
      nearest = &stamps_[i];
    }
    return nearest;
  }
  static std::uint64_t Distance(std::uint64_t a, std::uint64_t b) {
    const auto difference = static_cast<std::int64_t>(a - b);
    return static_cast<std::uint64_t>(difference < 0 ? -difference : difference);
  }

  // Tries each stamp for the newest expected launch, and takes the offset that most launches fit.
  bool FindOffset() {
    if (expected_count_ < kMinMatches) return false;
    std::size_t best = 0;
    const std::uint64_t anchor = expected_[expected_count_ - 1].end_ns;
    for (std::size_t i = 0; i < std::min(stamp_count_, kStamps); ++i) {
      const std::uint64_t offset = stamps_[i].end_ns - anchor;
      std::size_t fits = 0;
      for (std::size_t e = 0; e < expected_count_; ++e) {
        const Stamp* stamp = StampAt(expected_[e].end_ns + offset);
        fits += stamp != nullptr && stamp->end_ns - stamp->start_ns <= expected_[e].max_ns + kSlackNs ? 1 : 0;
      }
      if (fits <= best) continue;
      best = fits;
      offset_ = offset;
    }
    has_offset_ = best >= kMinMatches;
    misses_ = 0;
    return has_offset_;
  }

  void GiveUpOld() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < expected_count_; ++i) {
      if (++expected_[i].tries < 10 * kTries) {
        expected_[kept++] = expected_[i];
      } else {
        ++failures_;
      }
    }
    expected_count_ = kept;
  }

  std::array<Expected, kMaxExpected> expected_{};
  std::size_t expected_count_ = 0;
  std::array<Stamp, kStamps> stamps_{};
  std::size_t stamp_count_ = 0;
  std::uint64_t cursor_ = 0;
  std::uint64_t offset_ = 0;  // stamp minus marker
  bool has_offset_ = false;
  std::uint32_t misses_ = 0;
  std::uint32_t failures_ = 0;
};

}  // namespace xschedd::shim
