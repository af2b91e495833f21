// Handles of events that the program has destroyed, so that no event of ours gets one of them. A handle is the address
// of an object on the runtime's heap, so the next event may get it. Natively, a program that uses a destroyed handle by
// mistake (destroys it twice) gets the runtime's error. It must not hit an event of ours instead.
//
// Some thousands are remembered; handles of the same slot replace each other. Thread rule: any thread; no lock, no
// allocation.
#pragma once

#include <stdint.h>

#include <atomic>

#include "client-shim/core/fibonacci_hash.h"

namespace xschedd::shim {

class PastHandles {
 public:
  // Before the event is destroyed: afterwards its handle may be reused. relaxed, here and in Has: the runtime orders
  // the two, because it hands out a handle only after it has taken it back.
  void Add(void* handle) { SlotOf(handle).store(handle, std::memory_order_relaxed); }
  bool Has(void* handle) const { return SlotOf(handle).load(std::memory_order_relaxed) == handle; }

  // Calls `make`, which returns null if it fails, until the event's handle was never the program's, and then destroys
  // the other events by `destroy`. If the runtime has only such handles, because the program has destroyed thousands of
  // events, returns one of these.
  template <typename Make, typename Destroy>
  void* MakeApart(Make make, Destroy destroy) const {
    constexpr unsigned kMaxTaken = 64;
    void* taken[kMaxTaken];
    unsigned count = 0;
    void* made = make();
    while (made != nullptr && Has(made) && count < kMaxTaken) {
      taken[count++] = made;
      made = make();
    }
    while (count > 0)
      destroy(taken[--count]);
    return made;
  }

 private:
  static constexpr unsigned kSlotBits = 12;
  // Objects on the heap are at least 16 bytes apart.
  static unsigned Place(const void* handle) {
    return static_cast<unsigned>(FibonacciHash<kSlotBits>(reinterpret_cast<uintptr_t>(handle) >> 4));
  }
  std::atomic<void*>& SlotOf(const void* handle) { return slots_[Place(handle)]; }
  const std::atomic<void*>& SlotOf(const void* handle) const { return slots_[Place(handle)]; }

  std::atomic<void*> slots_[1u << kSlotBits] = {};
};

}  // namespace xschedd::shim
