// Names partitions: several devices on one PCI function are called ADDRESS, ADDRESS/1, ... in the order in which their
// uuids were first seen. A name stays with its uuid, even across a restart; another uuid gets it only if no other name
// is left and no client uses it. Bounded (kMaxPartitions). Thread rule: the daemon's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/registry/device.h"

namespace xschedd {

// The uuids seen at each PCI address; the index is the N of the name.
using Partitions = std::unordered_map<std::string, std::vector<std::string>>;

class PartitionNames {
 public:
  // The device's name; assigns one if it has none. A "/N" from the client is used as it is; without "/N" and uuid, the
  // client means the first partition. `devices`: those in use.
  std::string NameFor(const NewDevice& device, const Devices& devices);
  // The same, but assigns nothing: none if the device has no name yet.
  std::optional<std::string> Find(const NewDevice& device) const;

  const Partitions& Known() const { return known_; }
  // Differs after each change.
  std::uint64_t Version() const { return version_; }
  // Replaces what is known with what was saved before a restart.
  void Restore(const Partitions& saved);

 private:
  static constexpr std::size_t kMaxPerAddress = 64;

  // Forgets all names of one address that nobody uses. False: there is no such address.
  bool ForgetUnusedAddress(const Devices& devices);

  Partitions known_;
  std::size_t count_ = 0;  // of uuids
  std::uint64_t version_ = 0;
};

}  // namespace xschedd
