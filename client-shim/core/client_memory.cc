// The client's part of device memory: whose limit is in force, what the pools keep, and what the user is told.
// The account itself is memory_account.h.
#include <time.h>

#include <cstring>
#include <string>
#include <type_traits>

#include "client-shim/core/client.h"
#include "common/clock.h"
#include "common/memory_limit.h"

namespace xschedd::shim {
namespace {

// What memory_freeing leaves for memory_freed.
struct Release {
  MemoryAccount::Physical* physical;
  std::uint64_t handle;
  bool is_counted;
  MemoryCost cost;
};
static_assert(sizeof(Release) <= sizeof(MemoryRelease::core) && std::is_trivially_copyable_v<Release>);

std::string InMebibytes(std::uint64_t bytes) {
  constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
  return std::to_string(bytes / kMebibyte + (bytes % kMebibyte != 0 ? 1 : 0)) + " MiB";
}

}  // namespace

// ---- the limit -----------------------------------------------------------------------------------------------------

MemoryLimit Client::LimitNow(std::uint32_t slot) const {
  const SessionUse use(session_);
  const Session* const session = use.Get();
  const std::uint64_t daemons = session != nullptr ? session->Board().MemoryLimit(slot) : 0;
  const std::uint64_t own = environment_.memory_bytes;
  const std::uint64_t limit = SmallerLimit(own, daemons);
  return {limit, limit == own ? "XSCHEDD_MEMORY" : "the administrator's rule or claim"};
}

// The daemon writes what it wants before it welcomes the client. A program that asks before that would size its pools
// by the whole device.
MemoryLimit Client::LimitOf(std::uint32_t slot) {
  const timespec nap{0, 100'000};
  while (session_.load(std::memory_order_acquire) != nullptr && client_id_.load(std::memory_order_relaxed) == 0 &&
         MonotonicNs() < welcome_until_ns_.load(std::memory_order_relaxed)) {
    ::nanosleep(&nap, nullptr);
  }
  return LimitNow(slot);
}

std::uint64_t Client::KeptByPools(std::uint32_t slot, const MemoryLimit& limit) {
  const bool may_ask = !captures_.Any() && !captures_.AreCallsForbidden() && stub_.vendor->kept_by_pools != nullptr;
  return limit.bytes != 0 && may_ask ? stub_.vendor->kept_by_pools(static_cast<int>(slot)) : 0;
}

void Client::SayRefused(const MemoryCost& cost, const MemoryLimit& limit) {
  memory_.Refuse(cost.slot);
  if (said_refused_.exchange(true, std::memory_order_relaxed)) return;
  Warn("device " + std::to_string(cost.slot) + ": an allocation of " + InMebibytes(cost.bytes) +
       " is refused as out of memory: this process may have " + InMebibytes(limit.bytes) + " (" + limit.by +
       ") and has " + InMebibytes(memory_.Use(cost.slot).Bytes()) + "; raise the limit, or let the program use less");
}

// ---- allocations ---------------------------------------------------------------------------------------------------

bool Client::MemoryReserve(MemoryRequest* request) {
  if (request->device < 0) request->device = DeviceOf(request->stream);
  if (!IsDevice(request->device)) return true;
  Attach(request->device);
  request->is_captured = captures_.Any();
  const MemoryCost cost = CostOf(*request);
  const MemoryLimit limit = LimitOf(cost.slot);
  const std::uint64_t kept = KeptByPools(cost.slot, limit);
  if (memory_.Reserve(cost, limit.bytes, kept)) return true;
  // As the runtime does where the device is full: what its pools only keep is given back first.
  if (kept > memory_.Use(cost.slot).pooled) {
    stub_.vendor->trim_pools(request->device);
    if (memory_.Reserve(cost, limit.bytes, KeptByPools(cost.slot, limit))) return true;
  }
  SayRefused(cost, limit);
  return false;
}

MemoryCost Client::CostOf(const MemoryRequest& request) {
  return MemoryCost{static_cast<std::uint32_t>(request.device), request.kind == MemoryKind::kPooled, request.bytes,
                    request.owner};
}

void Client::MemoryKeep(const MemoryRequest& request, std::uint64_t handle, std::uint64_t bytes) {
  if (!IsDevice(request.device)) return;
  if (handle == 0) {
    memory_.Return(CostOf(request));
  } else if (request.kind == MemoryKind::kPhysical) {
    memory_.KeepPhysical(CostOf(request), handle, bytes);
  } else {
    memory_.Keep(CostOf(request), handle, bytes);
  }
}

void Client::MemoryReturn(const MemoryRequest& request) {
  if (IsDevice(request.device)) memory_.Return(CostOf(request));
}

void Client::MemoryFreeing(MemoryRelease* release, std::uint64_t handle, bool is_physical) {
  Release freed{nullptr, handle, false, {}};
  if (is_physical) {
    freed.physical = memory_.Releasing(handle);
  } else if (const auto cost = memory_.Take(handle)) {
    freed.is_counted = true;
    freed.cost = *cost;
  }
  std::memcpy(release->core, &freed, sizeof freed);
}

void Client::MemoryFreed(MemoryRelease* release, bool ok) {
  Release freed;
  std::memcpy(&freed, release->core, sizeof freed);
  if (freed.physical != nullptr) memory_.Released(freed.physical, ok);
  if (!freed.is_counted) return;
  if (ok) {
    memory_.Freed(freed.cost);
  } else {
    memory_.PutBack(freed.handle, freed.cost);
  }
}

MemoryView Client::ViewMemory(int device) {
  if (device < 0) device = stub_.vendor->current_device();
  if (!IsDevice(device)) return {0, 0};
  const auto slot = static_cast<std::uint32_t>(device);
  const MemoryLimit limit = LimitOf(slot);
  if (limit.bytes == 0) return {0, 0};
  return {limit.bytes, memory_.Use(slot).BytesWith(KeptByPools(slot, limit))};
}

}  // namespace xschedd::shim
