// A call of the program that may prove that work has finished, from its beginning to its end. It lives in the Sync; a
// call without one proves nothing. Thread rule: the thread that makes the call.
#pragma once

#include <cstdint>

#include "client-shim/core/trackers.h"

namespace xschedd::shim {

class TrackedSync {
 public:
  // A call about one device. Its success proves that the work in `snapshot`, taken at its beginning, has finished.
  // `now_ns`: the time of the beginning, for a query; else 0.
  TrackedSync(DeviceTracker* tracker, const Snapshot& snapshot, std::uint64_t now_ns)
      : tracker_(tracker), snapshot_(snapshot), began_ns_(now_ns) {}
  // A call that may wait for any device, and proves nothing. Its wait begins here.
  explicit TrackedSync(const Trackers& trackers);

  // After a query that found unfinished work: whether to repeat it, because that may only be a marker of ours.
  bool ShouldAskAgain() const;
  void End(const Trackers& trackers, bool ok) const;

 private:
  DeviceTracker* tracker_ = nullptr;  // null: see `implicit_`
  Snapshot snapshot_;
  std::uint64_t began_ns_ = 0;
  std::uint64_t implicit_ = 0;  // a bit for each device whose tracker has begun an implicit synchronisation
};

}  // namespace xschedd::shim
