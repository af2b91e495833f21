// GPU time of one client on one device, from the counter that the client keeps. A client that lies cannot claim more
// than the wall time that has passed, and cannot take anything back. Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>

namespace xschedd {

class GpuAccount {
 public:
  // Tracking begins; what the counter showed before does not count.
  void Start(std::uint64_t counter_ns, std::uint64_t now_ns);
  // Tracking ends.
  void Stop();

  // The client became busy: GPU time cannot be claimed for the idle time before.
  void Busy(std::uint64_t now_ns);

  // Reads the counter as of `now_ns`.
  void Read(std::uint64_t counter_ns, std::uint64_t now_ns);

  // What has been added since the last call.
  std::uint64_t TakeRanNs();

 private:
  std::uint64_t counter_ns_ = 0;  // as last read
  // Wall time before this is spent: GPU time was counted for it, or it lies too far back.
  std::uint64_t spent_until_ns_ = 0;
  std::uint64_t ran_ns_ = 0;
};

}  // namespace xschedd
