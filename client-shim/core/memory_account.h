// What this process has allocated on each device, by address or handle, and whether one more allocation stays within a
// limit. Knows no runtime and no session.
//
// An allocation is reserved before the real call and kept or returned after it: two threads that allocate at the same
// time cannot both get the last bytes. A free is taken out before the real call, because afterwards the address may be
// another's, and its bytes go when the call has succeeded.
//
// Three kinds:
//   plain      an address, or the handle of an array: ends with its free
//   pooled     an address out of a pool of the runtime, which may keep more than it has handed out: such memory counts
//              as what was handed out, or as what the pools keep, whichever is more (`kept_by_pools`, the caller asks)
//   physical   memory of the virtual memory API: ends when its last handle and its last mapping have gone
//
// Bytes are as asked for, without what the runtime adds. Thread rule: any thread; one lock, for the length of a
// look-up. `on_change` is called under it, in the order of the changes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "common/abi.h"

namespace xschedd::shim {

// One allocation. `owner`: what it goes with, if that goes first (a CUDA context); null: the device.
struct MemoryCost {
  std::uint32_t slot = 0;
  bool is_pooled = false;
  std::uint64_t bytes = 0;
  const void* owner = nullptr;
};

// Of a device.
struct MemoryUse {
  std::uint64_t plain = 0;  // and physical
  std::uint64_t pooled = 0;
  std::uint64_t refused = 0;  // allocations
  std::uint64_t Bytes() const { return plain + pooled; }
  // Pools included that keep so much in all.
  std::uint64_t BytesWith(std::uint64_t kept_by_pools) const;
};

class MemoryAccount {
 public:
  using OnChange = std::function<void(std::uint32_t slot, const MemoryUse& use)>;
  // No address space has as much. A larger allocation counts as this, so that sums fit: the runtime refuses it.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 52;

  explicit MemoryAccount(OnChange on_change);
  ~MemoryAccount();

  // False: with it the device would have more than `limit` bytes. 0: no limit. Refusals are counted by Refuse.
  [[nodiscard]] bool Reserve(const MemoryCost& cost, std::uint64_t limit, std::uint64_t kept_by_pools);
  void Refuse(std::uint32_t slot);
  // The real call has failed.
  void Return(const MemoryCost& reserved);
  // It has succeeded, gave `handle`, and came to `bytes`. A handle that is known belongs to memory that has gone
  // unseen.
  void Keep(const MemoryCost& reserved, std::uint64_t handle, std::uint64_t bytes);

  // Before the real free: what it will give back. Null: not ours to count. Then one of the two.
  std::optional<MemoryCost> Take(std::uint64_t handle);
  void Freed(const MemoryCost& taken) { Return(taken); }
  void PutBack(std::uint64_t handle, const MemoryCost& taken);

  // Physical memory. After the real call, but for Releasing, which comes before it. What is not known is passed over.
  class Physical;
  void KeepPhysical(const MemoryCost& reserved, std::uint64_t handle, std::uint64_t bytes);
  void Retain(std::uint64_t handle);  // one more handle, of the same value
  void Map(std::uint64_t at, std::uint64_t bytes, std::uint64_t handle);
  void Unmap(std::uint64_t at, std::uint64_t bytes);  // all mappings that begin in there
  Physical* Releasing(std::uint64_t handle);          // null: not known
  void Released(Physical* physical, bool has_succeeded);

  // What goes with `owner` has gone; null: all plain and pooled memory of the device.
  void Forget(std::uint32_t slot, const void* owner);

  MemoryUse Use(std::uint32_t slot) const;
  // Calls on_change for each device that ever had anything.
  void Publish() const;

 private:
  struct Mapping {
    std::uint64_t bytes;
    Physical* physical;
  };
  std::uint64_t* CounterOf(const MemoryCost& cost) {
    MemoryUse& use = uses_[cost.slot];
    return cost.is_pooled ? &use.pooled : &use.plain;
  }
  void Add(const MemoryCost& cost);
  void Subtract(const MemoryCost& cost);
  void DropIfUnused(Physical* physical);

  const OnChange on_change_;
  mutable std::mutex mutex_;
  std::array<MemoryUse, abi::kMaxDevices> uses_;
  std::uint64_t changed_slots_ = 0;  // a bit each
  std::unordered_map<std::uint64_t, MemoryCost> costs_;
  std::unordered_map<const Physical*, std::unique_ptr<Physical>> owned_;
  std::unordered_map<std::uint64_t, Physical*> physical_;  // by handle, of those that have one
  std::map<std::uint64_t, Mapping> mappings_;              // by address
};

}  // namespace xschedd::shim
