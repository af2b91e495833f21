// A launch of a tracked client, from the moment it is known to count until its call has returned (tracked_launch.cc).
// It lives in the Submission; if it is absent, the launch is not counted. Its destructor leaves the device, and then
// the session. Thread rule: the thread that launches.
#pragma once

#include <utility>

#include "client-shim/core/device_launch.h"
#include "client-shim/core/session.h"

namespace xschedd::shim {

struct TrackedLaunch {
  TrackedLaunch(SessionUse session_use, DeviceTracker* device, const StreamKey& stream, LaunchKey key,
                LaunchKey function)
      : use(std::move(session_use)), on_device(device, stream, key, function) {}

  SessionUse use;  // of null: there is no session, and streams are ordered all the same
  DeviceLaunch on_device;
};

}  // namespace xschedd::shim
