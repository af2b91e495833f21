// Remembers decisions about names by the places where they occur: the call sites of a library, the handles of a kernel.
// A place keeps its decision only while it has the same name, which is compared each time. So nothing that is unloaded,
// freed or made again in the same place inherits a decision, and such changes need not be reported.
//
//   place ──(hash)──► slot ──► the name that was seen there last, and its verdict ──(other name)──► all names, by hash
//
// Thread rule: any thread. Without a lock and without allocation where the slot has the name already.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

namespace xschedd::shim {

class NameVerdicts {
 public:
  using Decide = int (*)(const void* context, const char* name);
  // `decide` is asked once for each name. `context` outlives this object.
  NameVerdicts(Decide decide, const void* context) : decide_(decide), context_(context) {}

  int Of(const void* place, const char* name) {
    // Fibonacci hashing: call sites are close together.
    const std::uint64_t hash = reinterpret_cast<std::uintptr_t>(place) * 0x9e3779b97f4a7c15ull;
    auto& slot = slots_[hash >> (64 - kSlotBits)];
    // acquire: the entry behind the pointer is complete.
    const Entry* known = slot.load(std::memory_order_acquire);
    if (known != nullptr && std::strcmp(known->first.c_str(), name) == 0) return known->second;
    return Learn(slot, name);
  }

 private:
  using Entry = std::pair<const std::string, int>;
  static constexpr int kSlotBits = 8;
  static constexpr std::size_t kMaxNames = 16'384;  // a program that makes names without end: the rest costs time

  int Learn(std::atomic<const Entry*>& slot, const char* name) {
    const std::lock_guard lock(mutex_);
    auto found = names_.find(name);
    if (found == names_.end()) {
      const int verdict = decide_(context_, name);
      if (names_.size() >= kMaxNames) return verdict;
      found = names_.emplace(name, verdict).first;  // stays where it is for good
    }
    slot.store(&*found, std::memory_order_release);
    return found->second;
  }

  const Decide decide_;
  const void* const context_;
  std::array<std::atomic<const Entry*>, std::size_t{1} << kSlotBits> slots_{};
  std::mutex mutex_;
  std::unordered_map<std::string, int> names_;
};

}  // namespace xschedd::shim
