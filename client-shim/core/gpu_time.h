// The GPU time of a client on one device, each moment counted once. Pure arithmetic.
//
// Two upper bounds are kept for the same settled work, and the smaller counts:
//
//   spans   the union over the streams of the time from marker to marker. For a launch with a marker of its own, only
//   the
//           end of that time, as long as its cost. Exact while the client is alone; beside others it may contain time
//           in which its work waited for theirs, and idle time between launches
//   costs   the sum of the launches' costs (cost_table.h). Exact whatever other clients do; too large where streams of
//           the client overlap
//
// They are compared over periods of some 20 ms of GPU time. In shorter ones the order in which streams happen to settle
// would matter; in longer ones a time of overlap would cancel a time of waiting.
// Thread rule: guarded by its device's lock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "client-shim/core/interval_union.h"

namespace xschedd::shim {

class GpuTime {
 public:
  // `launches` that a stream finished between two of its markers. `cost_ns`: of all of them; 0: unknown.
  void Add(std::uint64_t from_ns, std::uint64_t to_ns, std::uint32_t launches, std::uint64_t cost_ns) {
    if (to_ns <= from_ns) return;
    const bool is_one = launches == 1 && cost_ns != 0;
    spans_ns_ += covered_.Add(is_one ? std::max(from_ns, to_ns - std::min(to_ns, cost_ns)) : from_ns, to_ns);
    costs_ns_ += cost_ns != 0 ? cost_ns : to_ns - from_ns;
  }
  // Work with no marker around it: its cost is all that is known.
  void AddUnmeasured(std::uint64_t cost_ns) {
    spans_ns_ += cost_ns;
    costs_ns_ += cost_ns;
  }
  // All settled work has been added: a period may end here.
  void EndRound() {
    const std::uint64_t both = std::min(spans_ns_, costs_ns_);
    if (both < kPeriodNs) return;
    total_ns_ += both;
    spans_ns_ = costs_ns_ = 0;
  }
  // Never falls.
  std::uint64_t TotalNs() const { return total_ns_ + std::min(spans_ns_, costs_ns_); }
  void Clear() { *this = GpuTime{}; }

 private:
  static constexpr std::uint64_t kPeriodNs = 20'000'000;

  IntervalUnion covered_;
  std::uint64_t total_ns_ = 0;
  std::uint64_t spans_ns_ = 0;  // of this period
  std::uint64_t costs_ns_ = 0;
};

}  // namespace xschedd::shim
