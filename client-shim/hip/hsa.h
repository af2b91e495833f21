// The layer below HIP, as the stub intercepts it: ROCr's functions by name. Thread rule: any thread.
#pragma once

#include <stdint.h>

#include <atomic>

#include "client-shim/stub/elf_objects.h"

namespace xschedd::shim::hip {

// hsa_status_t, of hsa.h.
using HsaStatus = int;
inline constexpr HsaStatus kHsaSuccess = 0;
inline constexpr HsaStatus kHsaError = 0x1000;

inline constexpr char kHsaLibrary[] = "libhsa-runtime64.so";

// The runtime's function of a name, looked up at its first use. A constant: the object has no constructors.
template <typename... Arguments>
class HsaFunction {
 public:
  constexpr explicit HsaFunction(const char* name) : name_(name) {}
  // kHsaError: the library is not loaded, or has no such function.
  HsaStatus operator()(Arguments... arguments) {
    // relaxed: whoever finds none looks it up itself, and finds the same.
    Function real = real_.load(std::memory_order_relaxed);
    if (real == nullptr) {
      real = reinterpret_cast<Function>(FindSymbol(FindObjectByName(kHsaLibrary), name_));
      real_.store(real, std::memory_order_relaxed);
    }
    return real != nullptr ? real(arguments...) : kHsaError;
  }

 private:
  using Function = HsaStatus (*)(Arguments...);
  const char* const name_;
  std::atomic<Function> real_{nullptr};
};

}  // namespace xschedd::shim::hip
