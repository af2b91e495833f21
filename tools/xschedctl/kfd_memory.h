// What KFD reports of processes' device memory (AMD): /sys/class/kfd/kfd/proc/PID/vram_GPUID, in bytes, which any user
// may read (Linux, drivers/gpu/drm/amd/amdkfd/kfd_process.c). GPUID is `gpu_id` of a node of the topology. It covers
// what was allocated through KFD, as HIP does. Thread rule: reads files; any thread.
#pragma once

#include <string>

#include "tools/xschedctl/device_memory.h"

namespace xschedd::ctl {

// `root`: the folder that contains sys. Adds nothing where there is no KFD.
void AddKfdMemory(const std::string& root, DeviceMemory& memory);

}  // namespace xschedd::ctl
