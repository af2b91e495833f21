// Makes a policy State of a device: it, all groups on it, all their other devices, and so on, until nothing outside can
// influence the decision: a cluster. What no group connects is left out, so that a decision costs what it touches.
//
// A cluster is kept from one decision to the next, so that a transition costs what it changed: who is in it is found
// anew only after Forget. Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "daemon/registry/registry.h"

namespace xschedd {

struct Cluster {
  policy::State state;
  std::size_t place = 0;                          // among the gatherer's
  std::map<std::uint32_t, std::size_t> by_owner;  // how many of the attachments each user has
  // Parallel to state.devices, state.groups, state.tenants.
  std::vector<Device*> devices;
  std::vector<Group*> groups;
  std::vector<Attachment*> attachments;
  std::vector<policy::Gate> gates;  // what each attachment has
  // The client's counter of GPU time, and what it showed when it was last read. A counter that stands still costs one
  // look.
  std::vector<LedgerCounter> counters;
  std::vector<std::uint64_t> counted_ns;
  // Likewise of launches. In the same line of memory as the other.
  std::vector<LedgerCounter> launch_counters;
  std::vector<std::uint64_t> launches;
  std::vector<std::uint32_t> touched;  // of these, what changed since the last Gather
  std::vector<std::uint32_t> fresh;    // what had changed before it
};

class Gatherer {
 public:
  // The cluster of `start` as it is now. Call it only to decide: each tenant's GPU time since the last call about it is
  // taken, and lost unless the policy is asked. The result is valid until Forget.
  Cluster& Gather(Device& start, const policy::Settings& settings, std::uint64_t now_ns);

  // The attachment's burst or deadline has changed.
  static void Touch(Attachment& attachment);
  // Who is in the device's cluster, or what its groups are, has changed or is about to: call it while all still exist.
  void Forget(Device& device);

 private:
  Cluster& Build(Device& start);
  void VisitDevice(Cluster& cluster, Device& device);
  void VisitGroup(Cluster& cluster, Group& group);
  static void Refresh(Cluster& cluster, const policy::Settings& settings, std::uint64_t now_ns);

  std::vector<std::unique_ptr<Cluster>> clusters_;
  std::vector<std::unique_ptr<Cluster>> spare_;  // kept for their memory
  std::uint64_t epoch_ = 0;
};

// How many background groups a device runs at a time where the configuration does not say: as many as there are on AMD,
// where queues of several processes run side by side; one where the driver gives processes time slices.
std::uint32_t DefaultMaxConcurrent(const Device& device);

}  // namespace xschedd
