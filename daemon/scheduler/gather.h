// Builds the policy's State for a device's cluster: the device, all groups on it, all their other devices, and so on,
// until nothing outside can influence the decision. Other devices are left out, so that a decision costs only what it
// touches.
//
// A cluster is kept between decisions, so that a transition costs only what it changed, and rebuilt only after Forget.
// Thread rule: the daemon's one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/registry/registry.h"

namespace xschedd {

struct Cluster {
  policy::State state;
  std::size_t place = 0;                        // in the gatherer's list
  std::map<Principal, std::size_t> by_payer;    // how many of the attachments each Attachment::payer has
  std::map<std::string, std::uint32_t> owners;  // their numbers in state.groups, by share_owner.h
  // Parallel to state.devices, state.groups, state.tenants.
  std::vector<Device*> devices;
  std::vector<Group*> groups;
  std::vector<Attachment*> attachments;
  std::vector<policy::Gate> gates;  // each attachment's gate
  // The client's counter of GPU time, and its last value read. A counter that stands still costs one read.
  std::vector<LedgerCounter> counters;
  std::vector<std::uint64_t> counted_ns;
  // The same for launches, in the same cache line.
  std::vector<LedgerCounter> launch_counters;
  std::vector<std::uint64_t> launches;
  std::vector<LedgerWord> in_flight;   // likewise
  std::vector<std::uint32_t> touched;  // attachments that have changed since the last Gather
  std::vector<std::uint32_t> fresh;    // those that the last Gather found changed
};

class Gatherer {
 public:
  // The present cluster of `start`. Call it only to decide: it consumes each tenant's GPU time since the last call,
  // which is lost unless a decision uses it. The result is valid until Forget.
  Cluster& Gather(Device& start, const policy::Settings& settings, std::uint64_t now_ns);

  // A decision costs more, the more clients there are. From kManyClients on, transitions that may wait
  // (policy::Gate::may_wait) do so, for the next decision, at most this long: an important client's then finds the
  // daemon free.
  static constexpr std::uint64_t kMayWaitNs = policy::kNsPerMs;
  static constexpr std::size_t kManyClients = 64;

  // The attachment's level, burst or deadline has changed.
  static void Touch(Attachment& attachment);
  static bool MayWait(const Attachment& attachment);
  // The cluster's members or their groups have changed, or are about to. Call it while all of them exist.
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

}  // namespace xschedd
