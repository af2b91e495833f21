// Two processes that wake each other periodically, to measure a bare futex round trip (two wake-ups) on this machine
// under the current load. Thread rule: the main thread, before it makes others.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace xschedd::bench {

class FutexPair {
 public:
  // Forks twice: call it before anything makes threads. `interval_us`: the pause between two round trips.
  explicit FutexPair(std::uint32_t interval_us);
  // Ends both.
  ~FutexPair();
  FutexPair(const FutexPair&) = delete;
  FutexPair& operator=(const FutexPair&) = delete;

  // Forgets what was measured so far.
  void Restart();
  // In nanoseconds; the last kSamples at most.
  std::vector<double> Samples() const;

 private:
  static constexpr std::uint32_t kSamples = 1u << 16;
  struct Shared;

  [[noreturn]] void Ask(std::uint32_t interval_us);
  [[noreturn]] void Answer();

  Shared* shared_;
  pid_t asking_ = -1;
  pid_t answering_ = -1;
};

}  // namespace xschedd::bench
