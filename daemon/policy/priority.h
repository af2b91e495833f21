// priority: on each device only the highest effective priority among busy groups is open; equals share the device.
//
//   - A group opens and closes as one: it is open only if nobody more important is busy on any device where it is busy.
//     Groups are admitted in order of priority, then arrival, over all devices at once, so that two groups that need
//     two devices never hold one each.
//   - Idle groups are shut out, too, where they would be held if they were busy: their first launch then waits.
//   - Everybody below the most important attached group has a window, whether that one is busy or not: the hardware
//     queues must be shallow when it arrives.
//   - A device whose attached groups all have one priority is untracked. Groups that an administrator holds count as
//     not attached.
// Linger, guard and turns: docs/policies.md. Thread rule: pure function.
#pragma once

#include "daemon/policy/types.h"

namespace xschedd::policy {

Decision DecidePriority(const State& state, std::uint64_t now_ns);

}  // namespace xschedd::policy
