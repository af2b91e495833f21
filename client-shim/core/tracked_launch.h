// A launch of a tracked client, from the moment it counts until its call has returned (tracked_launch.cc). It lives in
// the Submission; a launch without one does not count. Its destructor leaves the device, then the session.
// Thread rule: the thread that launches.
#pragma once

#include <utility>

#include "client-shim/core/device_launch.h"
#include "client-shim/core/session.h"

namespace xschedd::shim {

struct TrackedLaunch {
  TrackedLaunch(SessionUse session_use, DeviceTracker* device, const StreamKey& stream, LaunchKey key,
                LaunchKey function)
      : use(std::move(session_use)), on_device(device, stream, key, function) {}

  SessionUse use;  // of null where there is no session: streams are ordered without one, too
  DeviceLaunch on_device;
};

}  // namespace xschedd::shim
