#include "client-shim/core/memory_account.h"

#include <algorithm>
#include <utility>

namespace xschedd::shim {

// Lives while it has a handle or a mapping. `releasing`: handles that are in a release at the moment.
class MemoryAccount::Physical {
 public:
  MemoryCost cost;
  std::uint64_t handle = 0;
  std::uint64_t handles = 1;
  std::uint64_t releasing = 0;
  std::uint64_t mappings = 0;
};

namespace {

MemoryCost Bounded(MemoryCost cost) {
  cost.bytes = std::min(cost.bytes, MemoryAccount::kMostBytes);
  return cost;
}

}  // namespace

std::uint64_t MemoryUse::BytesWith(std::uint64_t kept_by_pools) const {
  return plain + std::max(pooled, std::min(kept_by_pools, MemoryAccount::kMostBytes));
}

MemoryAccount::MemoryAccount(OnChange on_change) : on_change_(std::move(on_change)) {}
MemoryAccount::~MemoryAccount() = default;

void MemoryAccount::Add(const MemoryCost& cost) {
  *CounterOf(cost) += cost.bytes;
  changed_slots_ |= std::uint64_t{1} << cost.slot;
  on_change_(cost.slot, uses_[cost.slot]);
}

void MemoryAccount::Subtract(const MemoryCost& cost) {
  *CounterOf(cost) -= cost.bytes;
  on_change_(cost.slot, uses_[cost.slot]);
}

bool MemoryAccount::Reserve(const MemoryCost& cost, std::uint64_t limit, std::uint64_t kept_by_pools) {
  const MemoryCost bounded = Bounded(cost);
  const std::lock_guard lock(mutex_);
  if (limit != 0) {
    MemoryUse with = uses_[cost.slot];
    (cost.is_pooled ? with.pooled : with.plain) += bounded.bytes;
    if (cost.bytes > limit || with.BytesWith(kept_by_pools) > limit) return false;
  }
  Add(bounded);
  return true;
}

void MemoryAccount::Refuse(std::uint32_t slot) {
  const std::lock_guard lock(mutex_);
  ++uses_[slot].refused;
  changed_slots_ |= std::uint64_t{1} << slot;
  on_change_(slot, uses_[slot]);
}

void MemoryAccount::Return(const MemoryCost& reserved) {
  const std::lock_guard lock(mutex_);
  Subtract(Bounded(reserved));
}

void MemoryAccount::Keep(const MemoryCost& reserved, std::uint64_t handle, std::uint64_t bytes) {
  MemoryCost kept = Bounded(reserved);
  const std::lock_guard lock(mutex_);
  *CounterOf(kept) -= kept.bytes;
  kept.bytes = std::min(bytes, kMostBytes);
  if (const auto known = costs_.find(handle); known != costs_.end()) {
    *CounterOf(known->second) -= known->second.bytes;
    if (known->second.slot != kept.slot) on_change_(known->second.slot, uses_[known->second.slot]);
    known->second = kept;
  } else {
    costs_.emplace(handle, kept);
  }
  Add(kept);
}

std::optional<MemoryCost> MemoryAccount::Take(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = costs_.find(handle);
  if (found == costs_.end()) return std::nullopt;
  const MemoryCost cost = found->second;
  costs_.erase(found);
  return cost;
}

void MemoryAccount::PutBack(std::uint64_t handle, const MemoryCost& taken) {
  const std::lock_guard lock(mutex_);
  costs_.insert_or_assign(handle, taken);
}

// ---- physical memory -----------------------------------------------------------------------------------------------

void MemoryAccount::KeepPhysical(const MemoryCost& reserved, std::uint64_t handle, std::uint64_t bytes) {
  MemoryCost kept = Bounded(reserved);
  auto made = std::make_unique<Physical>();
  const std::lock_guard lock(mutex_);
  *CounterOf(kept) -= kept.bytes;
  kept.bytes = std::min(bytes, kMostBytes);
  made->cost = kept;
  made->handle = handle;
  Physical* const physical = made.get();
  owned_.emplace(physical, std::move(made));
  // One of the same value is memory whose last release was not seen.
  if (const auto known = physical_.find(handle); known != physical_.end()) {
    Physical* const before = std::exchange(known->second, physical);
    before->handles = before->releasing;
    DropIfUnused(before);
  } else {
    physical_.emplace(handle, physical);
  }
  Add(kept);
}

void MemoryAccount::Retain(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  if (const auto found = physical_.find(handle); found != physical_.end()) ++found->second->handles;
}

void MemoryAccount::Map(std::uint64_t at, std::uint64_t bytes, std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = physical_.find(handle);
  if (found == physical_.end()) return;
  if (mappings_.emplace(at, Mapping{bytes, found->second}).second) ++found->second->mappings;
}

void MemoryAccount::Unmap(std::uint64_t at, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  auto found = mappings_.lower_bound(at);
  while (found != mappings_.end() && found->first - at < bytes) {
    Physical* const physical = found->second.physical;
    found = mappings_.erase(found);
    --physical->mappings;
    DropIfUnused(physical);
  }
}

MemoryAccount::Physical* MemoryAccount::Releasing(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = physical_.find(handle);
  if (found == physical_.end()) return nullptr;
  Physical* const physical = found->second;
  // The value of the last handle may be another's from the real call on.
  if (++physical->releasing == physical->handles) physical_.erase(found);
  return physical;
}

void MemoryAccount::Released(Physical* physical, bool has_succeeded) {
  const std::lock_guard lock(mutex_);
  --physical->releasing;
  if (!has_succeeded) {
    physical_.try_emplace(physical->handle, physical);
    return;
  }
  --physical->handles;
  DropIfUnused(physical);
}

void MemoryAccount::DropIfUnused(Physical* physical) {
  if (physical->handles != 0 || physical->mappings != 0) return;
  Subtract(physical->cost);
  owned_.erase(physical);
}

// ---- all of it -----------------------------------------------------------------------------------------------------

void MemoryAccount::Forget(std::uint32_t slot, const void* owner) {
  const std::lock_guard lock(mutex_);
  for (auto cost = costs_.begin(); cost != costs_.end();) {
    if (cost->second.slot != slot || (owner != nullptr && cost->second.owner != owner)) {
      ++cost;
      continue;
    }
    *CounterOf(cost->second) -= cost->second.bytes;
    cost = costs_.erase(cost);
  }
  on_change_(slot, uses_[slot]);
}

MemoryUse MemoryAccount::Use(std::uint32_t slot) const {
  const std::lock_guard lock(mutex_);
  return uses_[slot];
}

void MemoryAccount::Publish() const {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t slot = 0; slot < abi::kMaxDevices; ++slot) {
    if ((changed_slots_ >> slot & 1) != 0) on_change_(slot, uses_[slot]);
  }
}

}  // namespace xschedd::shim
