// How fast a session's messages are read: by their number and by their size, because a large one costs more to parse.
// What is not read stays in the client's socket, and no message is lost. Thread rule: the daemon's one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace xschedd {

class MessagePace {
 public:
  // A client says hello, its devices and its queues, then little more than one batch of counts a second.
  static constexpr double kPerSecond = 200;
  static constexpr double kBurst = 2'500;
  static constexpr double kBytesOfOne = 256;  // this much counts as one more message
  static constexpr std::uint64_t kLeastPauseNs = 10'000'000;

  // A message was handled. How long to wait before the next is read, in ns; 0: not at all.
  std::uint64_t Spend(std::size_t bytes, std::uint64_t now_ns) {
    const std::uint64_t passed = now_ns - std::min(last_ns_, now_ns);
    if (last_ns_ != 0) saved_ = std::min(kBurst, saved_ + static_cast<double>(passed) * kPerSecond / 1e9);
    last_ns_ = now_ns;
    saved_ -= 1 + static_cast<double>(bytes) / kBytesOfOne;
    if (saved_ >= 0) return 0;
    return std::max(kLeastPauseNs, static_cast<std::uint64_t>(-saved_ / kPerSecond * 1e9));
  }

 private:
  double saved_ = kBurst;
  std::uint64_t last_ns_ = 0;
};

}  // namespace xschedd
