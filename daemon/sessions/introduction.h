// Builds the registry's record of a client from its hello, its hints, and what the kernel says about its process.
// Client text is cleaned and cut. Thread rule: the daemon's one thread.
#pragma once

#include "daemon/connections/connections.h"
#include "daemon/registry/hints.h"
#include "daemon/registry/registry.h"
#include "daemon/registry/roles.h"
#include "session.pb.h"

namespace xschedd {

Hints HintsOf(const v1::Hello& hello);
Hints HintsOf(const v1::Hint& hint);

// A priority that this daemon does not know counts as the program's.
QueuePriorityReport ReportOf(const v1::QueuePriorities& report);
v1::QueuePriority ToMessage(policy::QueuePriority priority);

NewDevice DeviceOf(const v1::DeviceAttached& device);

// Reads /proc of the peer. The connection keeps ownership of the channel.
NewClient Introduce(Connection& connection, const v1::Hello& hello, const RoleGroups& groups);

}  // namespace xschedd
