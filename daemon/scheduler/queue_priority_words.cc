#include "daemon/scheduler/queue_priority_words.h"

#include <fmt/format.h>

namespace xschedd {
namespace {

constexpr std::string_view kRuntimeWithQueuePriorities = "HIP";

}  // namespace

std::string QueuePriorityText(const Client& client, const policy::Settings& settings) {
  const policy::QueuePriority wanted = policy::QueuePriorityOf(settings, client.effective.priority);
  if (wanted == policy::QueuePriority::kProgram || !client.runtime.starts_with(kRuntimeWithQueuePriorities)) return {};
  const std::string what = fmt::format("queue priority {}", wanted == policy::QueuePriority::kHigh ? "high" : "low");
  const QueuePriorityReport& report = client.queue_priority;
  if (report.priority != wanted || report.queues == 0) return what + ", not reported by the client so far";
  if (report.in_force == report.queues) {
    return fmt::format("{} on {} hardware queue{}", what, report.queues, report.queues == 1 ? "" : "s");
  }
  return fmt::format("{} on {} of {} hardware queues: the runtime refuses it on the others", what, report.in_force,
                     report.queues);
}

}  // namespace xschedd
