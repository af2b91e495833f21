#include "tools/softgpu/hsa/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace softgpu {

namespace {

constexpr uint64_t kPage = 4096;

struct Ranges {
  std::shared_mutex lock;
  std::map<uintptr_t, Allocation> by_base;
};

Ranges& ranges() {
  static auto* r = new Ranges;  // leaked, see runtime.h
  return *r;
}

// The file behind device memory, and where its unused part begins.
struct DeviceFile {
  int fd = -1;
  uint64_t end = 0;
  std::mutex lock;

  // Offset of `size` fresh bytes, or -1.
  int64_t extend(uint64_t size) {
    const std::lock_guard guard(lock);
    if (fd < 0) fd = memfd_create("softgpu-vram", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(end + size)) != 0) return -1;
    end += size;
    return static_cast<int64_t>(end - size);
  }
};

DeviceFile& device_file() {
  static auto* file = new DeviceFile;
  return *file;
}

void* map_device_memory(const Allocation& a) {
  void* p =
      mmap(nullptr, a.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, a.fd, static_cast<off_t>(a.offset));
  if (p == MAP_FAILED) return nullptr;
  // Like device memory on a real GPU, a child of fork does not have it.
  madvise(p, a.size, MADV_DONTFORK);
  return p;
}

uint64_t whole_pages(uint64_t size) {
  return (size + kPage - 1) & ~(kPage - 1);
}

void* map_host_memory(uint64_t size) {
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

}  // namespace

std::optional<Allocation> allocate_backing(const MemoryPool& pool, uint64_t size) {
  Allocation a{0, whole_pages(size), MemoryKind::kDevice, pool.agent, pool.global_flags, -1, 0, 0, nullptr};
  Region& region = runtime()->region;
  const bool counts = pool.agent->is_gpu();
  if (counts && !region.reserve_vram(pool.agent->ordinal, a.size, pool.size)) return std::nullopt;
  const int64_t offset = device_file().extend(a.size);
  if (offset < 0) {
    if (counts) region.release_vram(pool.agent->ordinal, a.size);
    return std::nullopt;
  }
  a.fd = device_file().fd;
  a.offset = static_cast<uint64_t>(offset);
  return a;
}

void release_backing(const Allocation& a) {
  fallocate(a.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(a.offset), static_cast<off_t>(a.size));
  Runtime* rt = runtime();
  if (rt != nullptr && a.owner->is_gpu()) rt->region.release_vram(a.owner->ordinal, a.size);
}

void* allocate(const MemoryPool& pool, uint64_t size) {
  size = whole_pages(size);
  Allocation a{0, size, MemoryKind::kHost, pool.agent, pool.global_flags, -1, 0, 0, nullptr};
  void* p = nullptr;
  if (pool.agent->is_gpu()) {
    const auto backing = allocate_backing(pool, size);
    if (!backing) return nullptr;
    a = *backing;
    p = map_device_memory(a);
    if (p == nullptr) release_backing(a);
  } else {
    p = map_host_memory(size);
  }
  if (p == nullptr) return nullptr;
  a.base = reinterpret_cast<uintptr_t>(p);
  add_allocation(a);
  return p;
}

hsa_status_t release(void* base) {
  const auto address = reinterpret_cast<uintptr_t>(base);
  for (const MemoryKind kind : {MemoryKind::kDevice, MemoryKind::kHost}) {
    const auto a = remove_allocation(address, kind);
    if (!a) continue;
    munmap(base, a->size);
    if (kind == MemoryKind::kDevice) release_backing(*a);
    return HSA_STATUS_SUCCESS;
  }
  return HSA_STATUS_ERROR_INVALID_ALLOCATION;
}

std::optional<Allocation> find_allocation(const void* address) {
  Ranges& r = ranges();
  const std::shared_lock guard(r.lock);
  const auto key = reinterpret_cast<uintptr_t>(host_address(address));
  auto it = r.by_base.upper_bound(key);
  if (it == r.by_base.begin()) return std::nullopt;
  --it;
  if (key - it->second.base >= it->second.size) return std::nullopt;
  return it->second;
}

void add_allocation(const Allocation& allocation) {
  Ranges& r = ranges();
  const std::unique_lock guard(r.lock);
  const auto [it, added] = r.by_base.try_emplace(allocation.base, allocation);
  if (!added && it->second.kind == MemoryKind::kLocked) {
    ++it->second.holds;
    it->second.size = std::max(it->second.size, allocation.size);
  }
}

std::optional<Allocation> remove_allocation(uintptr_t base, MemoryKind kind) {
  Ranges& r = ranges();
  const std::unique_lock guard(r.lock);
  const auto it = r.by_base.find(base);
  if (it == r.by_base.end() || it->second.kind != kind) return std::nullopt;
  const Allocation a = it->second;
  if (kind == MemoryKind::kLocked && a.holds > 1) {
    --it->second.holds;
  } else {
    r.by_base.erase(it);
  }
  return a;
}

bool set_user_data(const void* base, void* data) {
  Ranges& r = ranges();
  const std::unique_lock guard(r.lock);
  const auto it = r.by_base.find(reinterpret_cast<uintptr_t>(base));
  if (it == r.by_base.end()) return false;
  it->second.user_data = data;
  return true;
}

}  // namespace softgpu
