// fair: inside a priority class, who has had least of the GPU goes first, for jobs of which nothing is known.
//
//   - There are kFairLevels levels. A group's job begins on the first and goes down one each time that it has had the
//     level's quantum of GPU time: fair_quantum_ms on the first, four times as much on each further one, no end on the
//     last. Those on one level run together. So short jobs overtake long ones without being announced.
//   - A nanosecond of idleness takes one of attained GPU time away, and no more than twice what leads to the last level
//     is remembered. So a tenant of requests that is idle for most of the time stays on the first level, whatever it
//     has had in all, and no job needs longer than that to be a new one (0.84 s at the default). Waiting is not
//     idleness.
//   - GPU time of a group: the greatest over its devices of the sum over its tenants there.
// Starvation of the last level is limited by the guard alone. Thread rule: pure function.
#pragma once

#include "daemon/policy/standing.h"

namespace xschedd::policy {

inline constexpr int kFairLevels = 4;

Standing FairStanding(const Candidate& candidate, GroupMemory& next);

}  // namespace xschedd::policy
