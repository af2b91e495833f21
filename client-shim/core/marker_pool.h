// The markers of one device: taken from the free ones or created, recorded, and given back for reuse. They are never
// destroyed, so there are as many as were ever pending at once.
// Thread rule: guarded by its device's lock. Functions named Unlock... release it for a call of the runtime, and hold
// it again when they return.
#pragma once

#include <mutex>
#include <vector>

#include "client-shim/core/captures.h"
#include "client-shim/core/interface.h"

namespace xschedd::shim {

class MarkerPool {
 public:
  MarkerPool(int device, const Vendor* vendor) : device_(device), vendor_(vendor) {}

  // Null: none is free, and none can be created.
  void* UnlockToTake(std::unique_lock<std::mutex>& lock) {
    if (!free_.empty()) {
      void* const marker = free_.back();
      free_.pop_back();
      return marker;
    }
    lock.unlock();
    void* marker = nullptr;
    {
      const RelaxedThread relaxed(*vendor_);
      marker = vendor_->create_marker(device_);
    }
    lock.lock();
    is_failing_ = marker == nullptr;
    return marker;
  }
  bool UnlockToRecord(std::unique_lock<std::mutex>& lock, void* marker, void* stream) {
    lock.unlock();
    bool is_recorded = false;
    {
      const RelaxedThread relaxed(*vendor_);
      is_recorded = vendor_->record_marker(device_, marker, stream);
    }
    lock.lock();
    is_failing_ = !is_recorded;
    return is_recorded;
  }
  // Takes back a marker that is no longer used. Null: does nothing.
  void Give(void* marker) {
    if (marker != nullptr) Keep(marker);
  }
  // The runtime refused to create or record the last one.
  bool IsFailing() const { return is_failing_; }
  // The device was reset, and its markers are gone.
  void Drop() { free_.clear(); }

 private:
  // Out of line: a launch rarely has a marker to give.
  [[gnu::noinline]] void Keep(void* marker) { free_.push_back(marker); }

  const int device_;
  const Vendor* const vendor_;
  std::vector<void*> free_;
  bool is_failing_ = false;
};

}  // namespace xschedd::shim
