// deadline: inside a priority class, whose work is wanted first goes first.
//
//   - A group's deadline is the earliest of its busy tenants'. Equal ones run together; groups without a deadline run
//     together, after those with one. Late work keeps its place: it is more urgent than any other, and never dropped.
//   - An idle group stands where it would stand if it became busy now. So it has background windows prepared for itself
//     (its potential) exactly beside those that it would overtake: work wanted in a second is shallow beside a
//     neighbour with 33 ms frames for as long as its own end is more than 33 ms away, and work without a deadline
//     always is. Ordering potentials by deadline_after_ns alone would keep it shallow to the end, where nobody can
//     overtake it.
// One whose work is never done in time starves the others, but for the guard. Thread rule: pure function.
#pragma once

#include "daemon/policy/standing.h"

namespace xschedd::policy {

Standing DeadlineStanding(const Candidate& candidate, GroupMemory& next);

}  // namespace xschedd::policy
