// The memory pools that the program has made, and on which device each is. Of those beyond kMost, and of those that it
// has by another way, nothing is known: what they hand out counts on the device of the stream.
// Thread rule: any thread; no lock.
#pragma once

#include <stdint.h>

#include <atomic>

#include "client-shim/stub/allocation.h"

namespace xschedd::shim {

class MadePools {
 public:
  static constexpr int kMost = 256;

  void Add(Handle pool, int device) {
    if (pool == nullptr || device < 0) return;
    for (Pool& entry : pools_) {
      Handle empty = nullptr;
      if (!entry.handle.compare_exchange_strong(empty, Taken(), std::memory_order_relaxed)) continue;
      entry.device.store(device, std::memory_order_relaxed);
      // release: who finds the pool finds its device.
      entry.handle.store(pool, std::memory_order_release);
      return;
    }
  }
  // Before the pool is destroyed: afterwards its handle may be another's.
  void Remove(Handle pool) {
    if (pool == nullptr) return;
    for (Pool& entry : pools_) {
      Handle known = pool;
      if (entry.handle.compare_exchange_strong(known, nullptr, std::memory_order_relaxed)) return;
    }
  }
  int DeviceOf(Handle pool) const {
    if (pool == nullptr) return kDeviceOfStream;
    for (const Pool& entry : pools_) {
      if (entry.handle.load(std::memory_order_acquire) == pool) return entry.device.load(std::memory_order_relaxed);
    }
    return kDeviceOfStream;
  }
  template <typename Body>
  void ForEachOn(int device, Body body) const {
    for (const Pool& entry : pools_) {
      const Handle pool = entry.handle.load(std::memory_order_acquire);
      if (pool == nullptr || pool == Taken()) continue;
      if (entry.device.load(std::memory_order_relaxed) == device) body(pool);
    }
  }

 private:
  struct Pool {
    std::atomic<Handle> handle;
    std::atomic<int> device;
  };
  static Handle Taken() { return reinterpret_cast<Handle>(uintptr_t{1}); }

  Pool pools_[kMost] = {};
};

}  // namespace xschedd::shim
