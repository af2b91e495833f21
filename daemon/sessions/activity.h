// What a client reports of its queues now and then: launches and completions, and what passed by which rule.
// Statistics: nothing is decided by them. Thread rule: the daemon's one thread.
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
