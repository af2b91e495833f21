#include "daemon/sessions/activity.h"

#include <string>

#include "daemon/registry/limits.h"
#include "daemon/registry/process.h"

namespace xschedd {
namespace {

// Twice the default number of queues per client. The largest message has room for sixty thousand entries, and everybody
// else waits while they are counted.
constexpr int kMaxActivities = 8'192;
constexpr std::size_t kMaxRuleBytes = 256;
constexpr std::size_t kMemoryOfRule = 64;

}  // namespace

CountedActivity CountActivity(const v1::ActivityBatch& batch, Client& client, Quotas::Holding& memory) {
  CountedActivity counted;
  if (batch.queues_size() > kMaxActivities || batch.passed_size() > kMaxActivities) {
    counted.taken =
        Fail("a batch of more than " + std::to_string(kMaxActivities) + " entries was ignored", "send smaller batches");
    return counted;
  }
  for (const v1::ActivityBatch::Queue& part : batch.queues()) {
    // The queue may have been destroyed meanwhile.
    const auto queue = client.queues.find(part.queue());
    if (queue == client.queues.end()) continue;
    queue->second.launches += part.launches();
    queue->second.completions += part.completions();
  }
  for (const v1::ActivityBatch::Passed& part : batch.passed()) {
    const std::string rule = CleanText(part.rule(), kMaxRuleBytes);
    const auto known = client.passed.find(rule);
    if (known != client.passed.end()) {
      known->second += part.count();
      continue;
    }
    // Calls not counted by rule are still in the ledger's total.
    if (client.passed.size() >= kMaxPassedRules) continue;
    if (memory.Add(rule.size() + kMemoryOfRule)) {
      client.passed[rule] = part.count();
    } else {
      counted.is_memory_full = true;
    }
  }
  return counted;
}

}  // namespace xschedd
