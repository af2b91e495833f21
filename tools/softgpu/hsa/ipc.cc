// Device memory of another process: a handle names the process, its descriptor of the memfd that contains device
// memory, and the part; the importer opens that descriptor through /proc and maps the part. So the exporter must be
// alive when its memory is attached, and both must run as the same user; attached memory stays valid when the exporter
// ends. Thread rule: any thread.
#include <fcntl.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/softgpu/hsa/memory.h"
#include "tools/softgpu/hsa/runtime.h"

namespace softgpu {

namespace {

struct Handle {
  int32_t pid;
  int16_t fd;
  uint16_t device;
  uint64_t offset;
  uint64_t size;
  uint32_t global_flags;
  uint32_t magic;
};
static_assert(sizeof(Handle) <= sizeof(hsa_amd_ipc_memory_t));

constexpr uint32_t kMagic = 0x53475049;  // "IPGS"

}  // namespace

SOFTGPU_API hsa_status_t hsa_amd_ipc_memory_create(void* memory, size_t, hsa_amd_ipc_memory_t* handle) {
  if (memory == nullptr || handle == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  const auto a = find_allocation(memory);
  if (!a || a->kind != MemoryKind::kDevice || a->base != reinterpret_cast<uintptr_t>(memory)) {
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
  const Handle h{getpid(),
                 static_cast<int16_t>(a->fd),
                 static_cast<uint16_t>(a->owner->ordinal),
                 a->offset,
                 a->size,
                 a->global_flags,
                 kMagic};
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &h, sizeof h);
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_ipc_memory_attach(const hsa_amd_ipc_memory_t* handle, size_t, uint32_t,
                                                   const hsa_agent_t*, void** memory) {
  Runtime* rt = runtime();
  if (rt == nullptr) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  if (handle == nullptr || memory == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Handle h;
  std::memcpy(&h, handle, sizeof h);
  if (h.magic != kMagic || h.device >= rt->settings.devices) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", h.pid, h.fd);
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    std::fprintf(stderr, "softgpu: memory of process %d not attached: %s: %s; it must be alive and of the same user\n",
                 h.pid, path, std::strerror(errno));
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
  Agent* const owner = rt->gpu(h.device);
  if (owner == nullptr) {  // hidden by ROCR_VISIBLE_DEVICES
    close(fd);
    return HSA_STATUS_ERROR_INVALID_AGENT;
  }
  void* p = mmap(nullptr, h.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, static_cast<off_t>(h.offset));
  close(fd);
  if (p == MAP_FAILED) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  madvise(p, h.size, MADV_DONTFORK);
  add_allocation(
      {reinterpret_cast<uintptr_t>(p), h.size, MemoryKind::kImported, owner, h.global_flags, -1, 0, 0, nullptr});
  *memory = p;
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_ipc_memory_detach(void* memory) {
  const auto a = remove_allocation(reinterpret_cast<uintptr_t>(memory), MemoryKind::kImported);
  if (!a) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  munmap(memory, a->size);
  return HSA_STATUS_SUCCESS;
}

}  // namespace softgpu
