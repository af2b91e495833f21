// A rate with a burst. Thread rule: one owner.
#pragma once

#include <algorithm>
#include <cstdint>

namespace xschedd {

class TokenBucket {
 public:
  TokenBucket(double per_second, double burst) : per_ns_(per_second / 1e9), burst_(burst), tokens_(burst) {}

  // Takes one; false: there is none.
  bool Take(std::uint64_t now_ns) {
    const auto passed = static_cast<double>(now_ns - std::min(last_ns_, now_ns));
    if (last_ns_ != 0) tokens_ = std::min(burst_, tokens_ + passed * per_ns_);
    last_ns_ = now_ns;
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  double per_ns_;
  double burst_;
  double tokens_;
  std::uint64_t last_ns_ = 0;
};

}  // namespace xschedd
