// What a client reports from time to time: launches and completions of its queues, and calls passed through by each
// rule. Statistics only: no decision depends on them. Thread rule: the daemon's one thread.
#pragma once

#include "common/result.h"
#include "daemon/connections/quotas.h"
#include "daemon/registry/registry.h"
#include "session.pb.h"

namespace xschedd {

struct CountedActivity {
  Result<void> taken;           // fails if the batch is too large to be taken
  bool is_memory_full = false;  // a rule is not counted apart, for want of the user's memory
};

// `memory`: what the names of rules take.
CountedActivity CountActivity(const v1::ActivityBatch& batch, Client& client, Quotas::Holding& memory);

}  // namespace xschedd
