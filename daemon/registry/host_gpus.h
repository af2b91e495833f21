// What the kernel says about this machine's GPUs, and whether a process uses one: sysfs, KFD's topology, /proc. A
// client's own word is trusted for neither.
//
// Two kinds of device are not checked here: software GPUs, if the configuration lets clients name them
// (`software_gpu`), and the devices that two clients of `xschedctl doctor --self-test` share (IsSelfTestDevice). Thread
// rule: none of its own; each call reads files, and never waits for another process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/result.h"
#include "daemon/registry/registry.h"

namespace xschedd {

struct HostGpu {
  std::string vendor;               // "amd", "nvidia"
  std::string name;                 // of the product; the PCI ids where the kernel has no name
  std::uint32_t compute_units = 0;  // 0: the kernel does not say
  std::uint32_t partitions = 0;     // 0: the kernel does not say; 1: the GPU is whole
  // Identifies each partition, in their order; empty: the kernel does not distinguish them.
  std::vector<std::uint64_t> unique_ids = {};
};

class HostGpus {
 public:
  // `root`: a prefix to /sys and /proc, for tests.
  explicit HostGpus(std::string root = {}) : root_(std::move(root)) {}

  // `address`: of a PCI function, "0000:c1:00.0", in lower case. None: there is no such GPU.
  std::optional<HostGpu> Find(const std::string& address) const;

  // The uuid of the GPU at this address, or of the GPU that this partition belongs to: on NVIDIA the driver's,
  // "GPU-..."; on AMD the unique id, as ROCm writes it. Empty: the kernel does not show it.
  std::string UuidOf(const std::string& address) const;

  // The PCI address of the GPU with this device file: "/dev/nvidia0", "/dev/dri/renderD128". Empty: no GPU has it.
  std::string AddressOf(const std::string& device_file) const;

  // Whether the process has opened a device file of that vendor's driver. Fails if the daemon may not see that.
  Result<bool> IsUsedBy(pid_t pid, const std::string& vendor) const;

  // `claimed` with vendor, name and compute units from the kernel, and with the partition, if the kernel distinguishes
  // them. Refuses a GPU that this machine does not have, a partition that the GPU does not have, and a process that has
  // not opened its driver.
  Result<NewDevice> Confirm(pid_t pid, NewDevice claimed) const;

 private:
  std::string root_;
};

// Addresses in PCI domain ffff, where no GPU is.
bool IsSelfTestDevice(const std::string& address);

}  // namespace xschedd
