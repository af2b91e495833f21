#include "tools/xschedctl/device_memory.h"

#include "tools/xschedctl/kfd_memory.h"
#include "tools/xschedctl/nvml_memory.h"

namespace xschedd::ctl {

void DeviceMemory::Add(std::uint64_t pid, const std::string& device, std::uint64_t bytes) {
  by_device_[{pid, device}] += bytes;
}

void DeviceMemory::AddToGpu(std::uint64_t pid, const std::string& address, std::uint64_t bytes) {
  by_gpu_[{pid, address}] += bytes;
}

std::optional<std::uint64_t> DeviceMemory::Of(std::uint64_t pid, const std::string& device) const {
  if (const auto found = by_device_.find({pid, device}); found != by_device_.end()) return found->second;
  const auto found = by_gpu_.find({pid, device.substr(0, device.find('/'))});
  if (found == by_gpu_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::uint64_t> DeviceMemory::Of(std::uint64_t pid) const {
  std::optional<std::uint64_t> sum;
  for (const Bytes* each : {&by_device_, &by_gpu_}) {
    for (auto entry = each->lower_bound({pid, {}}); entry != each->end() && entry->first.first == pid; ++entry)
      sum = sum.value_or(0) + entry->second;
  }
  return sum;
}

DeviceMemory ReadDeviceMemory(const std::string& root) {
  DeviceMemory memory;
  AddKfdMemory(root, memory);
  AddNvmlMemory(memory);
  return memory;
}

}  // namespace xschedd::ctl
