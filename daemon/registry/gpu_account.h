// One tenant's GPU time, from the counter that its client keeps, limited to what is possible: a client that lies can
// claim no more than the wall time that has passed, and can take nothing back.
// Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>

namespace xschedd {

class GpuAccount {
 public:
  // Tracking begins; what the counter showed before does not count.
  void Start(std::uint64_t counter_ns, std::uint64_t now_ns);
  // Tracking ends.
  void Stop();

  // The client became busy: the idle time before is nothing to draw on.
  void Busy(std::uint64_t now_ns);

  // Takes over what the counter shows at `now_ns`.
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
