// What the namespaces and partitions of a fleet have used and waited for on this node: for metrics that add up over
// nodes.
//
// A client's space is its claim's label `namespace`, else `partition`; without either it is kNoSpace. At most
// kSpaceSeries spaces and kWaitSeries pairs have series of their own (top_series.h). Thread rule: the daemon's one
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "daemon/registry/claim.h"
#include "daemon/telemetry/top_series.h"

namespace xschedd {

inline constexpr std::size_t kSpaceSeries = 20;
inline constexpr std::size_t kWaitSeries = 40;
// No namespace and no partition has such a name: they begin with a letter or a digit.
inline constexpr char kNoSpace[] = "_none";
inline constexpr char kNobody[] = "_nobody";  // of blockers: nobody in particular, as with an administrator's hold

// `claim` may be null.
std::string SpaceOf(const Claim* claim);

class SpaceAccounts {
 public:
  using Used = TopSeries<std::string, 2>;                           // GPU time; of it, gained by sharing
  using Waits = TopSeries<std::pair<std::string, std::string>, 1>;  // waiter and blocker

  void Use(const std::string& space, std::uint64_t gpu_ns, std::uint64_t gained_ns);
  void Wait(const std::string& waiter, const std::string& blocker, std::uint64_t ns);
  // Decides which have a series from now on.
  void ChooseSeries();

  const Used& AllUsed() const { return used_; }
  const Waits& AllWaits() const { return waits_; }

 private:
  Used used_{kSpaceSeries};
  Waits waits_{kWaitSeries};
};

}  // namespace xschedd
