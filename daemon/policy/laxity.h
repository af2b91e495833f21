// laxity: inside a priority class, a group with a deadline lets all others pass while it has time to spare, and goes
// before all of them as soon as it has none.
//
//   - slack = deadline - now - what is left of the work; left = usual_ns - burst_ns: with an open gate, what the same
//     tenant has needed of late less what this burst has had. Where nothing is known of earlier bursts, there is no
//     slack.
//   - With slack it stands below groups without deadlines, and beside others that have slack. Once its slack is
//     laxity_margin_us or less it is urgent, and work that was urgent stays urgent while it runs, or it would change
//     places at every report of its progress.
//   - A request is rarely one burst: copy, kernels, copy. What becomes busy less than laxity_margin_us after urgent
//     work goes on as urgent, whatever its deadline; nobody waits for it meanwhile for longer than linger_us. So
//     whoever has work wanted by then and never pauses has no slack.
//   - Among urgent ones the earliest latest start (deadline - usual_ns) goes first. That of unfinished work is fixed,
//     for the same reason: two equal ones would otherwise hand over to each other all the time.
// Late work stays urgent. Thread rule: pure function.
#pragma once

#include "daemon/policy/standing.h"

namespace xschedd::policy {

Standing LaxityStanding(const Candidate& candidate, GroupMemory& next);

}  // namespace xschedd::policy
