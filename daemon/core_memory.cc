// Core's part in limits of device memory (scheduler/memory_watch.h). Thread rule: the daemon's one thread.
#include <boost/asio/post.hpp>
#include <utility>

#include "common/clock.h"
#include "daemon/core.h"

namespace xschedd {

void Core::DecideNow() {
  ApplyMemoryLimits();
  loop_.DecideNow();
}

void Core::DecideSoon() {
  ApplyMemoryLimits();
  loop_.DecideSoon();
}

void Core::ApplyMemoryLimits() {
  if (!std::exchange(are_memory_limits_changed_, false)) return;
  memory_.LookAtAll(MonotonicNs());
  AwaitLook();
}

void Core::ApplyMemoryEnforcing() {
  memory_.SetEnforcing(config_.enforce && enabled_);
  for (const auto& [id, client] : registry_.Clients())
    memory_.WriteUnattached(*client);
  are_memory_limits_changed_ = true;
  ApplyMemoryLimits();
}

void Core::LookAtMemory() {
  if (is_looking_at_memory_ || is_stopped_) return;
  is_looking_at_memory_ = memory_.LookAtNext(MonotonicNs());
  if (!is_looking_at_memory_) return;
  boost::asio::post(look_timer_.get_executor(), [this] {
    is_looking_at_memory_ = false;
    LookAtMemory();
  });
}

}  // namespace xschedd
