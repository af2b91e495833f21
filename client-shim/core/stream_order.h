// Which streams of a process are more important than others, and for how long a submission to one waits for the others.
// Pure. Uses the terms of the daemon's policy `priority` (daemon/policy) for streams instead of clients: priority,
// window, linger, guard. The daemon's own code is not used here: it decides for groups on several devices, with levers
// and measurements that streams do not have, and the client links nothing of the daemon's.
//
//   - A larger priority is more important. Runtimes count the other way round, so a stream's priority is the negative
//   of
//     the one that it was made with, unless the program sets another by the C API.
//   - A submission waits while a stream of higher priority on the same device has work, and for the linger afterwards.
//     Equals do not wait for each other.
//   - The legacy default stream never waits: blocking streams wait for it and it for them. It has priority 0, unless
//   the
//     program sets another, and holds those below it.
//   - Work that makes no progress (it waits for a value, an event, the host) lets others through, because it may wait
//   for
//     them. So a program that ends without this ends with it.
//   - The guard: no submission waits for longer than kLongestHoldNs at a time; then its priority is let through for
//     kGuardNs.
//
// Events need no rule of their own: an event stands for work submitted before it, and submitted work is never held.
//
// Thread rule: StreamOrder is immutable; StreamGuard, one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "common/priority.h"

namespace xschedd::shim {

// The default of the daemon's linger_us.
inline constexpr std::uint64_t kStreamLingerNs = 200'000;
// Work makes no progress if none of it has finished for this long and for twice the time that it is known to take.
inline constexpr std::uint64_t kStreamStillNs = 5'000'000;
// The limit of that second part.
inline constexpr std::uint64_t kLongestKnownNs = 100'000'000;
inline constexpr std::uint64_t kLongestHoldNs = 100'000'000;
inline constexpr std::uint64_t kGuardNs = 2'000'000;

// The known work of a stream at the moment.
struct StreamLoad {
  int priority = kPriorityDefault;
  bool has_work = false;
  std::uint64_t known_ns = 0;     // GPU time that its work is known to take
  std::uint64_t progress_ns = 0;  // when work on it last finished, or when it became busy; 0: never
};

// The priority of a stream that was made with `priority`, in a runtime where smaller is more important.
constexpr int StreamPriorityFrom(int priority) {
  return -std::clamp(priority, -kPriorityMax, -kPriorityMin);
}

// Until when this stream keeps less important ones waiting, if nothing changes meanwhile.
constexpr std::uint64_t BindsUntilNs(const StreamLoad& load) {
  if (load.has_work) return load.progress_ns + kStreamStillNs + std::min(2 * load.known_ns, kLongestKnownNs);
  return load.progress_ns == 0 ? 0 : load.progress_ns + kStreamLingerNs;
}

// The priorities of a process's streams.
class StreamOrder {
 public:
  StreamOrder() = default;
  // By handle. Other streams have the default.
  explicit StreamOrder(std::unordered_map<void*, int> priorities) : priorities_(std::move(priorities)) {
    for (const auto& [stream, priority] : priorities_) {
      is_mixed_ = is_mixed_ || priority != kPriorityDefault;
      highest_ = std::max(highest_, priority);
    }
  }
  // The priorities differ, so there is something to order.
  bool IsMixed() const { return is_mixed_; }
  int Of(void* stream) const {
    const auto found = priorities_.find(stream);
    return found != priorities_.end() ? found->second : kPriorityDefault;
  }
  // Whether submissions to the stream may have to wait.
  bool MayWait(void* stream) const { return stream != nullptr && Of(stream) < highest_; }

 private:
  std::unordered_map<void*, int> priorities_;
  int highest_ = kPriorityDefault;
  bool is_mixed_ = false;
};

// The guard of one device.
class StreamGuard {
 public:
  // Whether a submission that has waited since `began_ns` goes on now, whatever work others have. After a long wait,
  // its priority is let through for a while.
  bool LetsThrough(int priority, std::uint64_t began_ns, std::uint64_t now_ns) {
    std::uint64_t& until_ns = open_until_ns_[priority];
    if (now_ns >= began_ns + kLongestHoldNs) until_ns = std::max(until_ns, now_ns + kGuardNs);
    return now_ns < until_ns;
  }

 private:
  std::map<int, std::uint64_t> open_until_ns_;  // by priority
};

}  // namespace xschedd::shim
