// Markers that are free, for use again. They are never destroyed: their number is that of markers pending at once.
// Thread rule: guarded by its device's lock; calls no runtime.
#pragma once

#include <vector>

namespace xschedd::shim {

class MarkerPool {
 public:
  // Null: none is free, and one has to be made, without the lock.
  void* Take() {
    if (free_.empty()) return nullptr;
    void* const marker = free_.back();
    free_.pop_back();
    return marker;
  }
  // Of one that is not used any more. Null: nothing.
  void Give(void* marker) {
    if (marker != nullptr) Keep(marker);
  }
  // They are gone with their device.
  void Drop() { free_.clear(); }

 private:
  // Not in the way of a launch, which has none to give as a rule.
  [[gnu::noinline]] void Keep(void* marker) { free_.push_back(marker); }

  std::vector<void*> free_;
};

}  // namespace xschedd::shim
