// The devices that need a decision: now, because something changed there, or at a set time. Thread rule: the daemon's
// one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "daemon/registry/device.h"

namespace xschedd {

class DecisionQueue {
 public:
  // Something changed at the device.
  void Add(Device& device) {
    if (device.dirty) return;
    device.dirty = true;
    changed_.push_back(&device);
  }
  // Likewise, but that may wait until `due_ns`, or until the device's next decision before.
  void AddBy(Device& device, std::uint64_t due_ns) { SetDue(device, std::min(device.due_ns, due_ns)); }
  // The first device whose time has come. One at a time: what changes elsewhere meanwhile is not to wait for all.
  void AddFirstDue(std::uint64_t now_ns) {
    if (NextDueNs() <= now_ns) Add(*due_.begin()->second);
  }
  // The next device to decide about; null: none. It stays queued until Decided. Devices that are added meanwhile come
  // last.
  Device* Next() {
    while (next_ < changed_.size()) {
      Device* const device = changed_[next_++];
      if (device->dirty) return device;
    }
    changed_.clear();
    next_ = 0;
    return nullptr;
  }
  static void Decided(Device& device) { device.dirty = false; }
  // When the device needs a decision although nothing changes; policy::kNever: not at all.
  void SetDue(Device& device, std::uint64_t due_ns) {
    if (device.due_ns == due_ns) return;
    if (device.due_ns != policy::kNever) due_.erase({device.due_ns, &device});
    device.due_ns = due_ns;
    if (due_ns != policy::kNever) due_.emplace(due_ns, &device);
  }
  // Call it before the device is removed, but not between Next and the null that it returns at the end.
  void Remove(Device& device) {
    std::erase(changed_, &device);
    SetDue(device, policy::kNever);
  }

  bool IsEmpty() const { return changed_.empty(); }
  std::uint64_t NextDueNs() const { return due_.empty() ? policy::kNever : due_.begin()->first; }

 private:
  std::vector<Device*> changed_;
  std::size_t next_ = 0;  // index into changed_
  // Only devices with a time, so that a decision's cost does not depend on the others.
  std::set<std::pair<std::uint64_t, Device*>> due_;
};

}  // namespace xschedd
