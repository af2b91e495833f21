// What the kernel says of this machine's GPUs, and whether a process uses one: sysfs, KFD's topology, /proc. A client's
// word is taken for neither.
//
// Two kinds of device are not asked about here: those of a software GPU, where the configuration lets clients name them
// (`software_gpu`), and pretended ones (IsPretended), which `xschedctl doctor --self-test` has two clients share.
// Thread rule: none of its own; each call reads files, and waits for no process.
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
  std::string name;                 // of the product, or the PCI ids where the kernel has no name
  std::uint32_t compute_units = 0;  // 0: the kernel does not say
  std::uint32_t partitions = 0;     // 0: the same; 1: it is whole
  // By which each partition is known, in their order; empty: the kernel does not tell them apart.
  std::vector<std::uint64_t> unique_ids = {};
};

class HostGpus {
 public:
  // `root`: what stands before /sys and /proc.
  explicit HostGpus(std::string root = {}) : root_(std::move(root)) {}

  // `address`: of a PCI function, "0000:c1:00.0", in lower case. None: there is no such GPU.
  std::optional<HostGpu> Find(const std::string& address) const;

  // Of the GPU at this address, or whose partition is: the driver's, "GPU-..." on NVIDIA; on AMD the unique id, as ROCm
  // writes it. Empty: it cannot be seen.
  std::string UuidOf(const std::string& address) const;

  // The PCI address of the GPU whose device file this is: "/dev/nvidia0", "/dev/dri/renderD128". Empty: of none.
  std::string AddressOf(const std::string& device_file) const;

  // Whether the process has opened a device file of that vendor's driver. Fails where that cannot be seen.
  Result<bool> IsUsedBy(pid_t pid, const std::string& vendor) const;

  // `claimed` with vendor, name, compute units and, as far as the kernel tells partitions apart, the partition as the
  // kernel has them. Refuses what is no GPU of this machine, a partition that it does not have, and a process that has
  // not opened its driver.
  Result<NewDevice> Confirm(pid_t pid, NewDevice claimed) const;

 private:
  std::string root_;
};

// Addresses in PCI domain ffff, where no GPU is.
bool IsPretended(const std::string& address);

}  // namespace xschedd
