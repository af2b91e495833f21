// The HIP runtime's own kernels (__amd_rocclr_*: copies, fills, stream memory operations), which it compiles for the
// GPU and dispatches like any other; here they run on the host. Their argument layouts differ between ROCm versions.
// Thread rule: run_blit from packet processor threads.
#pragma once

#include <cstdint>
#include <string>

namespace softgpu {

struct Kernel;

bool is_blit_name(const std::string& name);

// Does what the kernel does and returns how many bytes it moved; a stream wait returns when its condition holds or
// `give_up` says so. An unknown blit kernel does nothing and is reported once.
uint64_t run_blit(const Kernel& kernel, const void* kernarg, bool (*give_up)(void*), void* context);

// True for stream waits: the packet processor waits first and books time afterwards.
bool is_stream_wait(const Kernel& kernel);

}  // namespace softgpu
