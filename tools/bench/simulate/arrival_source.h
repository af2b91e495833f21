// Generates the arrival times of an open-loop client's requests, in order. Thread rule: belongs to one simulation.
#pragma once

#include <cstdint>

#include "tools/bench/simulate/random.h"
#include "tools/bench/simulate/workload.h"

namespace xschedd::simulate {

class ArrivalSource {
 public:
  // `spec` must outlive the source.
  ArrivalSource(const ClientSpec& spec, std::uint64_t seed) : spec_(&spec), random_(seed) {}

  // False for clients whose next request depends on the end of the last.
  bool IsOpen() const {
    return spec_->arrivals.kind != ArrivalKind::kClosed && spec_->arrivals.kind != ArrivalKind::kGivenClosed &&
           spec_->arrivals.kind != ArrivalKind::kSaturating;
  }

  // The next arrival, in ns since the start, never before the last one; UINT64_MAX: there is none.
  std::uint64_t Next();

 private:
  const ClientSpec* spec_;
  Random random_;
  std::uint64_t count_ = 0;
  std::uint64_t last_ns_ = 0;
  std::uint64_t on_until_ns_ = 0;  // kOnOff: end of the current on-time
};

}  // namespace xschedd::simulate
