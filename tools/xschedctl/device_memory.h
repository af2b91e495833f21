// Device memory that processes have allocated, by process and GPU, as the drivers report it: KFD in sysfs (AMD), NVML
// (NVIDIA). Both report the pids of the host, as the daemon does, and processes of all users. Thread rule: values, but
// for ReadDeviceMemory, which reads files and asks the driver; main thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace xschedd::ctl {

class DeviceMemory {
 public:
  // `device`: as the daemon names it, "0000:c1:00.0" or "0000:c1:00.0/3". Adds to what is known already.
  void Add(std::uint64_t pid, const std::string& device, std::uint64_t bytes);
  // Of a GPU whose partitions the driver does not tell apart: a process has memory on one of them.
  void AddToGpu(std::uint64_t pid, const std::string& address, std::uint64_t bytes);

  // None: not known.
  std::optional<std::uint64_t> Of(std::uint64_t pid, const std::string& device) const;
  // On all devices.
  std::optional<std::uint64_t> Of(std::uint64_t pid) const;

 private:
  using Bytes = std::map<std::pair<std::uint64_t, std::string>, std::uint64_t>;
  Bytes by_device_;
  Bytes by_gpu_;
};

// Empty where no driver reports it. `root`: the folder that contains sys.
DeviceMemory ReadDeviceMemory(const std::string& root = {});

}  // namespace xschedd::ctl
