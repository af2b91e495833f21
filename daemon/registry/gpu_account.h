// The GPU time of one client on one device, from the counter that the client keeps. By falsifying it, a client can
// claim no more than the wall time that has passed, and cannot reduce what was counted. Thread rule: the daemon's one
// thread.
#pragma once

#include <cstdint>

namespace xschedd {

class GpuAccount {
 public:
  // Tracking begins; what the counter already shows does not count.
  void Start(std::uint64_t counter_ns, std::uint64_t now_ns);
  // Tracking ends.
  void Stop();

  // The client became busy: it cannot claim GPU time for the idle time before.
  void Busy(std::uint64_t now_ns);

  // Reads the counter as of `now_ns`.
  void Read(std::uint64_t counter_ns, std::uint64_t now_ns);

  // What has been added since the last call.
  std::uint64_t TakeRanNs();

 private:
  std::uint64_t counter_ns_ = 0;  // as last read
  // No GPU time can be claimed for wall time before this: it has been counted already, or the client was idle.
  std::uint64_t spent_until_ns_ = 0;
  std::uint64_t ran_ns_ = 0;
};

}  // namespace xschedd
