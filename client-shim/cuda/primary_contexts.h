// Primary contexts: each device has one, which is destroyed when its last user releases it. The core must forget the
// device before that, because it must not use destroyed objects. If not all users were seen, it can only do so
// afterwards. Thread rule: any thread.
#pragma once

#include <atomic>

#include "client-shim/cuda/vendor.h"
#include "client-shim/stub/wrapper_families.h"

namespace xschedd::shim::cuda {

// How often the program has retained each device's primary context, as far as that was seen.
class Retained {
 public:
  // relaxed, all: a program must itself order a release after another thread's uses.
  void Add(int device) {
    if (IsInRange(device)) counts_[device].fetch_add(1, std::memory_order_relaxed);
  }
  void SetContext(int device, Handle context) {
    if (IsInRange(device)) contexts_[device].store(context, std::memory_order_relaxed);
  }
  // The device's primary context; null: it was not seen.
  Handle Context(int device) const {
    return IsInRange(device) ? contexts_[device].load(std::memory_order_relaxed) : nullptr;
  }
  // Counts one release, and returns how many users there were before it. 0: not all of them were seen.
  int Remove(int device) {
    int count = IsInRange(device) ? counts_[device].load(std::memory_order_relaxed) : 0;
    while (count > 0 && !counts_[device].compare_exchange_weak(count, count - 1, std::memory_order_relaxed)) {
    }
    return count;
  }

 private:
  static bool IsInRange(int device) { return device >= 0 && device < static_cast<int>(abi::kMaxDevices); }
  std::atomic<int> counts_[abi::kMaxDevices] = {};
  std::atomic<Handle> contexts_[abi::kMaxDevices] = {};
};
inline Retained g_retained;

struct Retaining : Family {
  template <typename Way, typename Row, typename... Arguments>
  static void After(Result result, const void*, Arguments... arguments) {
    if (result != kSuccess) return;
    const int device = Row::DeviceOf(arguments...);
    g_retained.Add(device);
    g_retained.SetContext(device, Row::ContextOf(arguments...));
  }
};

// Has a frame of its own, because releases count even without a client: one that starts later needs the count.
struct Releasing : Family {};
template <typename Way, typename Row, typename Family, typename Function = typename Row::Function>
struct Around;
template <typename Way, typename Row, typename... Parameters>
struct Around<Way, Row, Releasing, Result (*)(Parameters...)> {
  static Result Call(Parameters... arguments) {
    const void* const caller = __builtin_return_address(0);
    const ClientTable* client = FindClient<Way, Releasing>(caller);
    const auto real = RealOrAbsent<Way, Row>(caller);
    const int device = Row::DeviceOf(arguments...);
    const int retained = g_retained.Remove(device);
    const Inside inside;
    if (retained == 1 && client != nullptr) ForgetDevice<Way>(client, device);
    const Result result = real(arguments...);
    if (result != kSuccess && retained > 0) g_retained.Add(device);
    const bool may_be_gone = result == kSuccess && retained != 1 && client != nullptr;
    if (may_be_gone && !IsPrimaryActive(device)) ForgetDevice<Way>(client, device);
    const bool takes_memory = result == kSuccess && client != nullptr && retained <= 1;
    if (takes_memory && !IsPrimaryActive(device)) client->memory_gone(device, g_retained.Context(device));
    return result;
  }
};

}  // namespace xschedd::shim::cuda
