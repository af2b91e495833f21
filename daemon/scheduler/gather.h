// Makes a policy State of a device: it, all groups on it, all their other devices, and so on, until nothing outside can
// influence the decision. What no group connects is left out, so that a decision costs what it touches.
// Thread rule: the daemon's one thread.
#pragma once

#include <vector>

#include "daemon/registry/registry.h"

namespace xschedd {

struct Gathered {
  policy::State state;
  // Parallel to state.devices, state.groups, state.tenants.
  std::vector<Device*> devices;
  std::vector<Group*> groups;
  std::vector<Attachment*> attachments;
};

class Gatherer {
 public:
  // Call it only to decide: each tenant's GPU time since the last call about it is taken. The result is valid until the
  // next call.
  Gathered& Gather(Device& start, const policy::Settings& settings, std::uint64_t now_ns);

 private:
  void VisitDevice(Device& device);
  void VisitGroup(Group& group);
  policy::Tenant View(Attachment& attachment, const Group& group) const;

  Gathered gathered_;  // kept for its memory
  std::uint64_t epoch_ = 0;
  std::uint64_t now_ns_ = 0;
};

// How many background groups a device runs at a time where the configuration does not say: as many as there are on AMD,
// where queues of several processes run side by side; one where the driver gives processes time slices.
std::uint32_t DefaultMaxConcurrent(const Device& device);

}  // namespace xschedd
