// A call of the program that may prove that work has finished, from its beginning to its end. It lives in the Sync;
// if it is absent, the call proves nothing. Thread rule: the thread that makes the call.
#pragma once

#include <cstdint>

#include "client-shim/core/trackers.h"

namespace xschedd::shim {

class TrackedSync {
 public:
  // On one device: its success proves that the work in `snapshot` has ended, which was taken when the call began.
  // `now_ns`: of a query, that time.
  TrackedSync(DeviceTracker* tracker, const Snapshot& snapshot, std::uint64_t now_ns)
      : tracker_(tracker), snapshot_(snapshot), began_ns_(now_ns) {}
  // On any device: it may wait, and proves nothing. The wait begins here.
  explicit TrackedSync(const Trackers& trackers);

  // Of a query that found unfinished work: whether it is to be made again, because that may be a marker of ours.
  bool AsksAgain() const;
  void End(const Trackers& trackers, bool ok) const;

 private:
  DeviceTracker* tracker_ = nullptr;  // null: of all in `implicit_`
  Snapshot snapshot_;
  std::uint64_t began_ns_ = 0;
  std::uint64_t implicit_ = 0;  // devices, a bit each, whose trackers know of an implicit synchronisation
};

}  // namespace xschedd::shim
