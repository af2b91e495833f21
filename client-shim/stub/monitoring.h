// NVML, rocm_smi and amdsmi as a library of the program's own: what they say of a device's memory is, under a limit of
// device memory, what the runtime says (stub/allocation.h). Programs and frameworks size their pools by either.
//
// Only once the process works with its GPU: before, nobody knows which of its devices is which of theirs. Without a
// limit, and of devices that the process does not have, the library's answer stands. Nobody else sees any of it: the
// tools nvidia-smi, rocm-smi and amd-smi are processes of their own. Sources: nvml.h 12 and 13; rocm_smi.h and amdsmi.h
// of ROCm 6 and 7. Thread rule: any thread.
#pragma once

#include <stdint.h>

#include "client-shim/stub/exposed.h"

namespace xschedd::shim {

inline constexpr char kNvml[] = "libnvidia-ml.so";
inline constexpr char kRocmSmi[] = "librocm_smi64.so";
inline constexpr char kAmdSmi[] = "libamd_smi.so";

}  // namespace xschedd::shim

XS_EXPORTED int nvmlDeviceGetMemoryInfo(void* device, void* memory);
XS_EXPORTED int nvmlDeviceGetMemoryInfo_v2(void* device, void* memory);
XS_EXPORTED int rsmi_dev_memory_total_get(uint32_t index, int type, uint64_t* out);
XS_EXPORTED int rsmi_dev_memory_usage_get(uint32_t index, int type, uint64_t* out);
XS_EXPORTED int amdsmi_get_gpu_memory_total(void* device, int type, uint64_t* out);
XS_EXPORTED int amdsmi_get_gpu_memory_usage(void* device, int type, uint64_t* out);
XS_EXPORTED int amdsmi_get_gpu_vram_usage(void* device, void* usage);
