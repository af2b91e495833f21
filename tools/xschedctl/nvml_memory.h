// What NVIDIA's driver reports of processes' device memory, through its library NVML, which is loaded if it is there.
// It includes the driver's own memory for each context. Thread rule: one user at a time; it loads a library, which
// stays loaded.
#pragma once

#include "tools/xschedctl/device_memory.h"

namespace xschedd::ctl {

inline constexpr char kNvml[] = "libnvidia-ml.so.1";

// Adds nothing where there is no such library or no GPU. `library`: a name or path for dlopen.
void AddNvmlMemory(DeviceMemory& memory, const char* library = kNvml);

}  // namespace xschedd::ctl
