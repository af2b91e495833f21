// The real CUDA driver behind the wrappers: which of the loaded objects it is, and where its functions are.
//
// Every library of CUDA calls the driver in the end: cudart, shared or static, opens libcuda.so.1 and looks up
// cuGetProcAddress in it; the others call cudart or the driver. Thread rule: any thread.
#pragma once

#include <atomic>

#include "client-shim/cuda/entry_points.h"
#include "client-shim/cuda/types.h"
#include "client-shim/stub/front_end.h"

namespace xschedd::shim::cuda {

// The word that the launch path reads (stub/launch_path.h).
extern std::atomic<const abi::Word*> g_summary;

// The driver's exports. Never null once resolved: for a function that the driver lacks, it is one that returns
// CUDA_ERROR_NOT_SUPPORTED.
extern std::atomic<void*> g_real[kEntryCount];
extern void* const kWrappers[kEntryCount];

// Finds the driver and its exports if that is not done yet. False: no libcuda is loaded.
bool ResolveDriver();
// The function `name` of the driver, or null. Only after ResolveDriver.
void* DriverSymbol(const char* name);
// Whether `address` is code of the driver.
bool IsDriverCode(const void* address);

// The answer of cuGetProcAddress to a request for which the driver's answer is `found`.
void* WrapperOf(const char* symbol, void* found, int version, uint64_t flags);

// The real function of `entry`, whose type the caller must know.
template <typename Function>
[[gnu::always_inline]] inline Function Real(uint32_t entry) {
  // relaxed: written before the summary word that led here was published, or by ResolveDriver in this thread.
  return reinterpret_cast<Function>(g_real[entry].load(std::memory_order_relaxed));
}

extern FrontEnd g_front_end;

}  // namespace xschedd::shim::cuda
