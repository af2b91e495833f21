#include "daemon/registry/partition_names.h"

#include <algorithm>
#include <utility>

#include "daemon/registry/limits.h"

namespace xschedd {
namespace {

std::string NameOf(const std::string& address, std::size_t index) {
  return index == 0 ? address : address + "/" + std::to_string(index);
}

// The first name of the address that no client uses; `uuids.size()`: all are in use.
std::size_t FirstUnused(const std::string& address, const std::vector<std::string>& uuids, const Devices& devices) {
  std::size_t index = 0;
  while (index < uuids.size() && devices.contains(NameOf(address, index)))
    ++index;
  return index;
}

bool IsAnyUsed(const std::string& address, const std::vector<std::string>& uuids, const Devices& devices) {
  for (std::size_t index = 0; index < uuids.size(); ++index) {
    if (devices.contains(NameOf(address, index))) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> PartitionNames::Find(const NewDevice& device) const {
  const std::string& address = device.pci_address;
  const bool names_partition = address.find('/') != std::string::npos;
  if (names_partition || device.uuid.empty()) return address;
  const auto at = known_.find(address);
  if (at == known_.end()) return std::nullopt;
  const auto found = std::find(at->second.begin(), at->second.end(), device.uuid);
  if (found == at->second.end()) return std::nullopt;
  return NameOf(address, static_cast<std::size_t>(found - at->second.begin()));
}

std::string PartitionNames::NameFor(const NewDevice& device, const Devices& devices) {
  if (auto name = Find(device)) return *std::move(name);
  const std::string& address = device.pci_address;
  const bool has_room = count_ < kMaxPartitions || ForgetUnusedAddress(devices);
  std::vector<std::string>& uuids = known_[address];
  std::size_t index = uuids.size();
  if (!has_room || index >= device.max_partitions) {
    index = FirstUnused(address, uuids, devices);
    if (index == uuids.size()) {
      if (uuids.empty()) known_.erase(address);
      return address;
    }
    uuids[index] = device.uuid;
  } else {
    uuids.push_back(device.uuid);
    ++count_;
  }
  ++version_;
  return NameOf(address, index);
}

bool PartitionNames::ForgetUnusedAddress(const Devices& devices) {
  const auto unused = std::find_if(known_.begin(), known_.end(),
                                   [&](const auto& entry) { return !IsAnyUsed(entry.first, entry.second, devices); });
  if (unused == known_.end()) return false;
  count_ -= unused->second.size();
  known_.erase(unused);
  ++version_;
  return true;
}

void PartitionNames::Restore(const Partitions& saved) {
  known_.clear();
  count_ = 0;
  for (const auto& [address, uuids] : saved) {
    if (uuids.size() > kMaxPerAddress || count_ + uuids.size() > kMaxPartitions) continue;
    count_ += uuids.size();
    known_.emplace(address, uuids);
  }
  ++version_;
}

}  // namespace xschedd
