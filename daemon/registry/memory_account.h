// Device memory of one client on one device, by its shim's account, as the daemon last looked at it; maintained by
// scheduler/memory_watch.h. Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>
#include <optional>

namespace xschedd {

struct MemoryAccount {
  std::uint64_t bytes = 0;                        // allocated
  std::uint64_t limit = 0;                        // the most that it may have here now; 0: no limit
  std::uint64_t refused = 0;                      // its counter of refused allocations
  std::optional<std::uint64_t> refused_at_first;  // the same at the first look; none: no look yet
  std::uint64_t untold = 0;                       // refused allocations for which no event was made yet
};

}  // namespace xschedd
