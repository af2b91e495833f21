// What the scheduler has done so far, for GetStats and metrics. Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>

namespace xschedd {

struct SchedulerCounts {
  std::uint64_t transitions = 0;
  std::uint64_t changes = 0;  // transitions and changes of a deadline
  std::uint64_t decisions = 0;
  std::uint64_t gate_writes = 0;
  std::uint64_t refused_records = 0;  // jumps in a client's count of records, as no correct one has
};

}  // namespace xschedd
