// The types that only the CUDA driver has; stub/runtime_types.h has the others. tests/unit/shim/cuda compares them with
// cuda.h where that is installed. Source: cuda.h 13.0; none of these has changed since it appeared.
// Thread rule: plain data.
#pragma once

#include <stdint.h>

#include "client-shim/stub/runtime_types.h"

namespace xschedd::shim::cuda {

// 64 bits from CUDA 3.2 on, 32 before. It has one register or stack slot either way, whose upper half is passed on.
using DevicePtr = uint64_t;
using MemLocation = uint64_t;  // CUmemLocation, passed by value: two 32-bit numbers in one register

// A flag of cuGetProcAddress. The values 0 and 1 mean the legacy default stream.
inline constexpr uint64_t kPerThreadFlag = 2;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

}  // namespace xschedd::shim::cuda
