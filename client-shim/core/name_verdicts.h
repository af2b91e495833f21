// Caches decisions about names by the addresses where they occur: call sites in a library, handles of kernels. The name
// is compared each time, so whatever is unloaded, freed or made again at an address does not inherit a decision, and
// such changes need not be reported.
//
//   address ──(hash)──► slot ──► the name that was last seen there, with its verdict ──(other name)──► all names, by
//   hash
//
// Thread rule: any thread. No lock and no allocation if the slot already has the name.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "client-shim/core/fibonacci_hash.h"

namespace xschedd::shim {

class NameVerdicts {
 public:
  using Decide = int (*)(const void* context, const char* name);
  // `decide` is asked once for each name. `context` outlives this object.
  NameVerdicts(Decide decide, const void* context) : decide_(decide), context_(context) {}

  int Of(const void* address, const char* name) {
    auto& slot = slots_[FibonacciHash<kSlotBits>(reinterpret_cast<std::uintptr_t>(address))];
    // acquire: the entry behind the pointer is complete.
    const Entry* known = slot.load(std::memory_order_acquire);
    if (known != nullptr && std::strcmp(known->first.c_str(), name) == 0) return known->second;
    return Learn(slot, name);
  }

 private:
  using Entry = std::pair<const std::string, int>;
  static constexpr unsigned kSlotBits = 8;
  static constexpr std::size_t kMaxNames = 16'384;  // if a program makes more, each call about these decides anew

  int Learn(std::atomic<const Entry*>& slot, const char* name) {
    const std::lock_guard lock(mutex_);
    auto found = names_.find(name);
    if (found == names_.end()) {
      const int verdict = decide_(context_, name);
      if (names_.size() >= kMaxNames) return verdict;
      found = names_.emplace(name, verdict).first;  // never moved or removed
    }
    // release: pairs with the acquire in Of.
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
