// Handles of events that the program has destroyed: none of our events may get one of them. A handle is the address of
// an object on the runtime's heap, so the next event may get it. A program that uses a destroyed handle by mistake
// (destroys it twice) gets the runtime's error natively, and would get hold of our event otherwise.
//
// Some thousands are remembered; of two with the same place, the later. Thread rule: any thread; no lock, no
// allocation.
#pragma once

#include <stdint.h>

#include <atomic>

namespace xschedd::shim {

class PastHandles {
 public:
  // Before the event is destroyed: afterwards its handle may be anybody's.
  void Add(void* handle) { SlotOf(handle).store(handle, std::memory_order_relaxed); }
  // relaxed: the order is that of the runtime, which gives a handle again after it has taken it back.
  bool Has(void* handle) const { return SlotOf(handle).load(std::memory_order_relaxed) == handle; }

  // An event by `make`, which is null where it fails, whose handle was never the program's; those that were are given
  // back by `destroy`. Where the runtime has no other handles (a program that has destroyed thousands), one of these.
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
    return static_cast<unsigned>((reinterpret_cast<uintptr_t>(handle) >> 4) * 0x9e3779b97f4a7c15ull >>
                                 (64 - kSlotBits));
  }
  std::atomic<void*>& SlotOf(const void* handle) { return slots_[Place(handle)]; }
  const std::atomic<void*>& SlotOf(const void* handle) const { return slots_[Place(handle)]; }

  std::atomic<void*> slots_[1u << kSlotBits] = {};
};

}  // namespace xschedd::shim
