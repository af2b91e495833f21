// The priority of a client's hardware queues, in words for `xschedctl`, as the client claims it. Thread rule: the
// daemon's one thread.
#pragma once

#include <string>

#include "daemon/registry/client.h"

namespace xschedd {

// "queue priority high on 4 hardware queues". Empty: none is wanted, or the client's vendor has none.
std::string QueuePriorityText(const Client& client, const policy::Settings& settings);

}  // namespace xschedd
