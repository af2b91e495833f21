// Which priority the hardware queues of a client are to have (the setting queue_priority). It follows from the client's
// own priority alone, so it changes only when that does: on AMD each change interrupts every process on the GPU.
// Pure. Thread rule: values.
#pragma once

#include "daemon/policy/settings.h"

namespace xschedd::policy {

// kProgram: as the program asks of its runtime.
enum class QueuePriority { kProgram, kLow, kHigh };

constexpr QueuePriority QueuePriorityOf(const Settings& settings, int priority) {
  if (!settings.queue_priority || priority == 0) return QueuePriority::kProgram;
  return priority > 0 ? QueuePriority::kHigh : QueuePriority::kLow;
}

}  // namespace xschedd::policy
