// The types of the CUDA driver alone that the shim needs to see (stub/runtime_types.h has the others);
// tests/unit/shim/cuda compares them with cuda.h where that is installed. Source: cuda.h 13.0; none of these has
// changed since it appeared. Thread rule: plain data.
#pragma once

#include <stdint.h>

#include "client-shim/stub/runtime_types.h"

namespace xschedd::shim::cuda {

// 64 bits from CUDA 3.2 on, 32 before. A register or stack slot either way, and ours leaves its upper half alone.
using DevicePtr = uint64_t;
using MemLocation = uint64_t;  // CUmemLocation, passed by value: two 32-bit numbers in one register

// Flags of cuGetProcAddress: 0 and 1 ask for the legacy default stream.
inline constexpr uint64_t kPerThreadFlag = 2;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

}  // namespace xschedd::shim::cuda
