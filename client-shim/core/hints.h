// What a program asks for: for the process, and for single streams. The streams of a process are gated together, so the
// highest of these hints counts for the process; what has no hint does not count. Thread rule: any
// thread.
#pragma once

#include <algorithm>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace xschedd::shim {

template <typename Value>
class Hint {
 public:
  // What holds while nothing else is said of the process: the environment's.
  explicit Hint(std::optional<Value> otherwise) : otherwise_(otherwise) {}

  // Nothing: as it was at the start. Both return whether Highest() is another now.
  bool Set(std::optional<Value> value) {
    const std::lock_guard lock(mutex_);
    process_ = value;
    return Update();
  }
  bool SetStream(void* stream, std::optional<Value> value) {
    const std::lock_guard lock(mutex_);
    if (value) {
      streams_[stream] = *value;
    } else {
      streams_.erase(stream);
    }
    return Update();
  }
  std::unordered_map<void*, Value> OfStreams() const {
    const std::lock_guard lock(mutex_);
    return streams_;
  }
  bool HasStreams() const {
    const std::lock_guard lock(mutex_);
    return !streams_.empty();
  }
  std::optional<Value> OfProcess() const {
    const std::lock_guard lock(mutex_);
    return process_ ? process_ : otherwise_;
  }
  std::optional<Value> Highest() const {
    const std::lock_guard lock(mutex_);
    return Find();
  }

 private:
  std::optional<Value> Find() const {
    std::optional<Value> highest = process_ ? process_ : otherwise_;
    for (const auto& [stream, value] : streams_)
      highest = highest ? std::max(*highest, value) : value;
    return highest;
  }
  bool Update() {
    const std::optional<Value> now = Find();
    return std::exchange(last_, now) != now;
  }

  mutable std::mutex mutex_;
  const std::optional<Value> otherwise_;
  std::optional<Value> process_;
  std::optional<Value> last_ = otherwise_;
  std::unordered_map<void*, Value> streams_;
};

}  // namespace xschedd::shim
