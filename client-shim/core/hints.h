// A hint that a program gives for the process and for single streams. The streams of a process are gated together, so
// the highest hint of all counts for the process. A stream without a hint does not count. Thread rule: any thread.
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
  // `initial`: the environment's, for the process.
  explicit Hint(std::optional<Value> initial) : initial_(initial) {}

  // Without a value: back to the initial one, or none for the stream. Both return whether Highest() has changed.
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
    return process_ ? process_ : initial_;
  }
  std::optional<Value> Highest() const {
    const std::lock_guard lock(mutex_);
    return FindHighest();
  }

 private:
  std::optional<Value> FindHighest() const {
    std::optional<Value> highest = process_ ? process_ : initial_;
    for (const auto& [stream, value] : streams_)
      highest = highest ? std::max(*highest, value) : value;
    return highest;
  }
  bool Update() {
    const std::optional<Value> now = FindHighest();
    return std::exchange(last_, now) != now;
  }

  mutable std::mutex mutex_;
  const std::optional<Value> initial_;
  std::optional<Value> process_;
  std::optional<Value> last_ = initial_;  // Highest(), as of the last change
  std::unordered_map<void*, Value> streams_;
};

}  // namespace xschedd::shim
