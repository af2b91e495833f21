// Device memory of a client as ps and top show it: what the driver reports, else what the client's shim counts; and
// whether the two disagree. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "admin.pb.h"
#include "tools/xschedctl/device_memory.h"

namespace xschedd::ctl {

// What a driver adds to a process's allocations: its context. NVML reports 518 MiB for an empty one on an H200 (driver
// 580.159.04). The code of its kernels comes on top: there 100 to 340 MiB for PyTorch 2.11, which the least difference
// below has room for; 1.2 GiB and more with CUDA_MODULE_LOADING=EAGER, which is then said.
inline constexpr std::uint64_t kContextBytes = std::uint64_t{512} << 20;

// None: the client's shim keeps no account.
std::optional<std::uint64_t> CountedMemory(const v1::ClientDevice& device);

struct MemoryShown {
  std::uint64_t bytes = 0;
  bool is_counted = false;  // by the shim; false: reported by the driver
};
std::optional<MemoryShown> ShownMemory(std::optional<std::uint64_t> reported, std::optional<std::uint64_t> counted);
// "12.0 GiB"; with "~" before it if it is the shim's account.
std::string Text(const MemoryShown& memory);

// Whether the two differ by more than a tenth of what is reported and more than 512 MiB, beyond the context.
bool Differs(std::uint64_t reported, std::uint64_t counted);

// Whether a row shows memory by a shim's account, and a line for each client and device whose two differ; empty: none.
struct MemoryNotes {
  bool any_counted = false;
  std::string differences;
};
MemoryNotes NotesOn(const v1::ListClientsResponse& answer, const DeviceMemory& memory);

}  // namespace xschedd::ctl
