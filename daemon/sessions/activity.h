// Counts what a client reports periodically: launches and completions of its queues, and calls that each passthrough
// rule let pass. Statistics only; no decision depends on them. Thread rule: the daemon's one thread.
#pragma once

#include "common/result.h"
#include "daemon/connections/quotas.h"
#include "daemon/registry/registry.h"
#include "session.pb.h"

namespace xschedd {

struct CountedActivity {
  Result<void> taken;           // an error: the batch was too large, and was ignored
  bool is_memory_full = false;  // a rule is not counted separately: the user's memory quota is used up
};

// `memory` is charged for the names of rules.
CountedActivity CountActivity(const v1::ActivityBatch& batch, Client& client, Quotas::Holding& memory);

}  // namespace xschedd
