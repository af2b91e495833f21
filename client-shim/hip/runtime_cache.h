// Caches which runtime a caller belongs to (other_runtimes.h). Takes no lock, so that a child of fork cannot find one
// taken: each slot is a seqlock, and a writer leaves a slot alone that another one is writing. Callers of the same slot
// replace each other. Thread rule: any thread.
#pragma once

#include <stdint.h>

#include <atomic>

#include "client-shim/stub/elf_objects.h"

namespace xschedd::shim::hip {

class RuntimeCache {
 public:
  // What Put stored for this caller. `generation`: LoaderGeneration(), because a loaded or unloaded object makes
  // answers old. Only base and dynamic of `runtime` are set. False: nothing is stored.
  bool Find(const void* caller, uint64_t generation, ElfObject* runtime) const {
    const Slot& slot = slots_[IndexOf(caller)];
    // acquire: pairs with the store that ends a Put. relaxed, the values: the number is checked again afterwards.
    const uint64_t number = slot.number.load(std::memory_order_acquire);
    const bool is_known = slot.key.load(std::memory_order_relaxed) == KeyOf(caller, generation);
    runtime->base = slot.base.load(std::memory_order_relaxed);
    runtime->dynamic = slot.dynamic.load(std::memory_order_relaxed);
    // acquire: pairs with the fence of a thread that writes the slot again.
    std::atomic_thread_fence(std::memory_order_acquire);
    return is_known && number % 2 == 0 && slot.number.load(std::memory_order_relaxed) == number;
  }
  void Put(const void* caller, uint64_t generation, const ElfObject& runtime) {
    Slot& slot = slots_[IndexOf(caller)];
    // acquire: the values of the previous Put are written before these.
    uint64_t number = slot.number.load(std::memory_order_acquire);
    if (number % 2 != 0) return;
    if (!slot.number.compare_exchange_strong(number, number + 1, std::memory_order_acquire)) return;
    // release: a reader that sees any of these values also sees that the number has changed.
    std::atomic_thread_fence(std::memory_order_release);
    slot.key.store(KeyOf(caller, generation), std::memory_order_relaxed);
    slot.base.store(runtime.base, std::memory_order_relaxed);
    slot.dynamic.store(runtime.dynamic, std::memory_order_relaxed);
    // release: a reader that sees the number also sees the values.
    slot.number.store(number + 2, std::memory_order_release);
  }

 private:
  struct Slot {
    std::atomic<uint64_t> number{0};  // odd while a thread writes the slot
    std::atomic<uint64_t> key{0};     // 0: nothing is stored
    std::atomic<uint64_t> base{0};
    std::atomic<uint64_t> dynamic{0};
  };
  static constexpr unsigned kSlots = 256;

  static unsigned IndexOf(const void* caller) { return (reinterpret_cast<uintptr_t>(caller) >> 2) % kSlots; }
  // Addresses of user space have 47 bits. Of the generation, 16 bits are enough.
  static uint64_t KeyOf(const void* caller, uint64_t generation) {
    return (reinterpret_cast<uintptr_t>(caller) << 16) | (generation & 0xffff);
  }

  Slot slots_[kSlots];
};

}  // namespace xschedd::shim::hip
