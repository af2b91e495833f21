// A GPU, or a partition of one, that at least one client is attached to. Thread rule: the daemon's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/policy/types.h"
#include "daemon/registry/attachment.h"

namespace xschedd {

struct Cluster;

struct Device {
  std::string pci_address;  // its name; "/N" is added for all but the first partition of a PCI function
  std::shared_ptr<const std::string> shared_address;  // for the event log, which outlives the device
  std::string name;
  std::string vendor;
  std::uint32_t compute_units = 0;
  std::vector<Attachment*> attachments;       // in order of arrival
  std::map<Principal, std::size_t> by_payer;  // attachments of each place, and (without a place) of each user
  policy::DeviceMemory memory;
  // For the gatherer only: the mark, as in Group; its cluster (null: it must be built) and its place there.
  std::uint64_t visited = 0;
  std::uint32_t index = 0;
  Cluster* cluster = nullptr;
  // For the decision queue only: whether it is queued, and when to decide again even if nothing changes.
  bool dirty = false;
  std::uint64_t due_ns = policy::kNever;
  // For the scheduler only: the first transition since the last decision that could not wait for it; 0: none.
  std::uint64_t seen_ns = 0;
  std::uint32_t metered = kNoAccount;  // for the meter only: its account there; kNoAccount: not looked up yet
};

using Devices = std::map<std::string, std::unique_ptr<Device>>;  // by name

// What a client reports when it attaches to a device.
struct NewDevice {
  std::uint32_t slot = 0;
  std::string pci_address;
  std::string name;
  std::string vendor;
  std::uint32_t compute_units = 0;
  std::string uuid;  // as the runtime gives it; empty: not known
  std::uint32_t max_partitions = 64;
  bool is_under_mps = false;
};

}  // namespace xschedd
