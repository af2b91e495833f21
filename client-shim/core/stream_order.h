// Which stream of a process goes before which, and for how long a submission to one waits for the others. Pure. In the
// words of the daemon's policy `priority` (daemon/policy), applied to streams instead of clients: priority, window,
// linger, guard. The daemon's own code is not used here: it decides for groups on several devices, with levers and
// memory that streams do not have, and the client links nothing of the daemon's.
//
//   - A larger number is more important. A runtime counts the other way round, so a stream's number is the negative of
//     the priority that it was made with. What the program sets for a stream by the C API goes before that.
//   - A submission waits while a stream of a higher number on the same device has work, and for the linger after it.
//     Equals do not wait for each other.
//   - The legacy default stream never waits: blocking streams wait for it and it for them. It has the number 0, unless
//     the program sets another, and holds those below it.
//   - Work that stands still (it waits for a value, an event, the host) lets the others through, because they may be
//     what it waits for. So a program that ends without this ends with it.
//   - The guard: no submission waits for longer than kLongestHoldNs at once; then its number has a turn.
//
// An event needs no rule of its own: it stands for work that was submitted before it, and nothing submitted is held.
//
// Thread rule: StreamOrder does not change once it is made; StreamGuard has one user at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "common/priority.h"

namespace xschedd::shim {

// As the daemon's linger_us is by default.
inline constexpr std::uint64_t kStreamLingerNs = 200'000;
// Work that has not moved for so long, and for twice what it is known to take, stands still.
inline constexpr std::uint64_t kStreamStillNs = 5'000'000;
// The longest that what work is known to take keeps others waiting, without any of it finishing.
inline constexpr std::uint64_t kLongestKnownNs = 100'000'000;
inline constexpr std::uint64_t kLongestHoldNs = 100'000'000;
inline constexpr std::uint64_t kStreamTurnNs = 2'000'000;

// What a stream is known to have at the moment.
struct StreamLoad {
  int priority = kPriorityDefault;
  bool has_work = false;
  std::uint64_t known_ns = 0;     // GPU time that its work is known to take
  std::uint64_t progress_ns = 0;  // when work on it finished last, or when it got its first after it had none; 0: never
};

// The number of a stream that was made with `priority`, by a runtime for which a smaller one is more important.
constexpr int StreamPriorityFrom(int priority) {
  return -std::clamp(priority, -kPriorityMax, -kPriorityMin);
}

// Until when this stream keeps less important ones waiting, if nothing happens meanwhile.
constexpr std::uint64_t BindsUntilNs(const StreamLoad& load) {
  if (load.has_work) return load.progress_ns + kStreamStillNs + std::min(2 * load.known_ns, kLongestKnownNs);
  return load.progress_ns == 0 ? 0 : load.progress_ns + kStreamLingerNs;
}

// The numbers of a process's streams.
class StreamOrder {
 public:
  StreamOrder() = default;
  // By handle; of what is not there, the default.
  explicit StreamOrder(std::unordered_map<void*, int> priorities) : priorities_(std::move(priorities)) {
    for (const auto& [stream, priority] : priorities_) {
      is_mixed_ = is_mixed_ || priority != kPriorityDefault;
      highest_ = std::max(highest_, priority);
    }
  }
  // Not all have the same: there is something to order.
  bool IsMixed() const { return is_mixed_; }
  int Of(void* stream) const {
    const auto found = priorities_.find(stream);
    return found != priorities_.end() ? found->second : kPriorityDefault;
  }
  // Whether submissions to it may have to wait.
  bool MayWait(void* stream) const { return stream != nullptr && Of(stream) < highest_; }

 private:
  std::unordered_map<void*, int> priorities_;
  int highest_ = kPriorityDefault;
  bool is_mixed_ = false;
};

// The guard of one device.
class StreamGuard {
 public:
  // Whether who has waited since `began_ns` goes on now, whoever else has work. Gives its number a turn if it was long.
  bool LetsThrough(int priority, std::uint64_t began_ns, std::uint64_t now_ns) {
    std::uint64_t& until_ns = turns_[priority];
    if (now_ns >= began_ns + kLongestHoldNs) until_ns = std::max(until_ns, now_ns + kStreamTurnNs);
    return now_ns < until_ns;
  }

 private:
  std::map<int, std::uint64_t> turns_;  // until when
};

}  // namespace xschedd::shim
