// The streams that the program has made and not destroyed: which device each is on.
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace xschedd::shim {

struct StreamInfo {
  int device = -1;
  int priority = 0;
  unsigned flags = 0;
  bool was_seen_made = false;  // else met first at a launch
};

class StreamTable {
 public:
  void Add(void* stream, const StreamInfo& info) {
    const std::unique_lock lock(mutex_);
    streams_[stream] = info;
  }
  std::optional<StreamInfo> Find(void* stream) const {
    const std::shared_lock lock(mutex_);
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return std::nullopt;
    return found->second;
  }
  std::optional<StreamInfo> Remove(void* stream) {
    const std::unique_lock lock(mutex_);
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return std::nullopt;
    const StreamInfo info = found->second;
    streams_.erase(found);
    return info;
  }
  std::vector<void*> RemoveDevice(int device) {
    const std::unique_lock lock(mutex_);
    std::vector<void*> removed;
    for (auto entry = streams_.begin(); entry != streams_.end();) {
      if (entry->second.device == device) {
        removed.push_back(entry->first);
        entry = streams_.erase(entry);
      } else {
        ++entry;
      }
    }
    return removed;
  }
  std::vector<std::pair<void*, StreamInfo>> All() const {
    const std::shared_lock lock(mutex_);
    return {streams_.begin(), streams_.end()};
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<void*, StreamInfo> streams_;
};

}  // namespace xschedd::shim
