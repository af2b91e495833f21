// What a launch of a tracked client carries along its way (tracked_launch.cc). It lives in the Submission, from its
// beginning to its end. Thread rule: the thread that launches.
#pragma once

#include <cstdint>

#include "client-shim/core/device_tracker.h"
#include "client-shim/core/session.h"

namespace xschedd::shim {

struct TrackedLaunch {
  DeviceTracker* tracker;  // null: the launch is not counted, and there is nothing to do at its end
  Session* session;        // in use until then; null: there is none, and streams are ordered all the same
  Ticket ticket;
  std::uint64_t drained_batch;  // what a call that drains its stream proves, as in a Snapshot
  std::uint64_t drained_epoch;
};

}  // namespace xschedd::shim
