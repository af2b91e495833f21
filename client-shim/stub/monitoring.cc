#include "client-shim/stub/monitoring.h"

#include <stdint.h>
#include <string.h>

#include "client-shim/cuda/driver.h"
#include "client-shim/cuda/vendor.h"
#include "client-shim/hip/runtime.h"
#include "client-shim/hip/vendor.h"
#include "client-shim/stub/allocation.h"
#include "client-shim/stub/client.h"
#include "client-shim/stub/elf_objects.h"
#include "client-shim/stub/launch_path.h"

namespace xschedd::shim {
namespace {

// What the libraries return where a function is not there: NVML_ERROR_FUNCTION_NOT_FOUND, RSMI_STATUS_NOT_SUPPORTED and
// AMDSMI_STATUS_NOT_SUPPORTED.
constexpr int kNvmlNotFound = 13;
constexpr int kSmiNotSupported = 2;
constexpr int kVideoMemory = 0;  // RSMI_MEM_TYPE_VRAM, AMDSMI_MEM_TYPE_VRAM

template <typename Function>
Function Real(const char* library, const char* name) {
  return reinterpret_cast<Function>(FindSymbol(FindObjectByName(library), name));
}

// What the process is to see of the device of its own for which `is_it` says so; no limit where there is none.
template <typename IsIt>
MemoryView ViewOf(const FrontEnd* front_end, int (*count)(), IsIt is_it) {
  MemoryView view{0, 0};
  const Inside inside;
  const ClientTable* const client = RunningClient(front_end);
  if (client == nullptr) return view;
  const int devices = count();
  for (int device = 0; device < devices; ++device) {
    if (!is_it(device)) continue;
    client->memory_view(device, &view);
    break;
  }
  return view;
}

// ---- NVML

// By the identifier: "GPU-..." or "MIG-..." there, "GPU-..." of either in ours.
MemoryView ViewOfNvml(void* device) {
  constexpr size_t kPrefix = 4;
  using GetUuid = int (*)(void*, char*, unsigned);
  const auto get_uuid = Real<GetUuid>(kNvml, "nvmlDeviceGetUUID");
  char theirs[96] = "";
  if (get_uuid == nullptr || RunningClient(&cuda::g_front_end) == nullptr) return {0, 0};
  if (get_uuid(device, theirs, sizeof theirs) != 0 || strlen(theirs) <= kPrefix) return {0, 0};
  return ViewOf(&cuda::g_front_end, cuda::DeviceCount, [&](int ordinal) {
    char ours[96] = "";
    return cuda::DeviceUuid(ordinal, ours, sizeof ours) && strcmp(ours + kPrefix, theirs + kPrefix) == 0;
  });
}

struct NvmlMemory {  // nvmlMemory_t
  unsigned long long total, free, used;
};
struct NvmlMemoryV2 {  // nvmlMemory_v2_t
  unsigned version;
  unsigned long long total, reserved, free, used;
};

template <typename Memory>
int NvmlMemoryInfo(const char* name, void* device, Memory* memory) {
  const auto real = Real<int (*)(void*, Memory*)>(kNvml, name);
  const int result = real != nullptr ? real(device, memory) : kNvmlNotFound;
  if (result != 0 || memory == nullptr) return result;
  const MemoryView view = ViewOfNvml(device);
  if (view.limit_bytes == 0) return result;
  ShowLimited(view, &memory->free, &memory->total);
  memory->used = memory->total > memory->free ? memory->total - memory->free : 0;
  return result;
}

// ---- rocm_smi and amdsmi

// By the PCI address, of which both have domain, bus, device and function in one number, though not in the same places.
struct Pci {
  unsigned domain, bus, device, function;
};
MemoryView ViewOfAmd(const Pci& pci) {
  return ViewOf(&hip::g_front_end, hip::DeviceCount, [&](int ordinal) {
    char text[32] = "";  // "0000:05:00.0"
    if (!hip::PciAddress(ordinal, text, sizeof text)) return false;
    unsigned numbers[4] = {};
    int which = 0;
    for (const char* c = text; *c != '\0'; ++c) {
      if (*c == ':' || *c == '.') {
        if (++which > 3) return false;
      } else {
        numbers[which] = numbers[which] * 16 + static_cast<unsigned>(*c <= '9' ? *c - '0' : (*c | 0x20) - 'a' + 10);
      }
    }
    return which == 3 && numbers[0] == pci.domain && numbers[1] == pci.bus && numbers[2] == pci.device &&
           numbers[3] == pci.function;
  });
}

MemoryView ViewOfRocmSmi(uint32_t index) {
  const auto get_pci = Real<int (*)(uint32_t, uint64_t*)>(kRocmSmi, "rsmi_dev_pci_id_get");
  uint64_t id = 0;
  if (get_pci == nullptr || get_pci(index, &id) != 0) return {0, 0};
  return ViewOfAmd({static_cast<unsigned>(id >> 32), static_cast<unsigned>(id >> 8 & 0xff),
                    static_cast<unsigned>(id >> 3 & 0x1f), static_cast<unsigned>(id & 7)});
}

MemoryView ViewOfAmdSmi(void* device) {
  const auto get_pci = Real<int (*)(void*, uint64_t*)>(kAmdSmi, "amdsmi_get_gpu_device_bdf");
  uint64_t id = 0;
  if (get_pci == nullptr || get_pci(device, &id) != 0) return {0, 0};
  return ViewOfAmd({static_cast<unsigned>(id >> 16), static_cast<unsigned>(id >> 8 & 0xff),
                    static_cast<unsigned>(id >> 3 & 0x1f), static_cast<unsigned>(id & 7)});
}

uint64_t Total(const MemoryView& view, uint64_t real) {
  return real < view.limit_bytes ? real : view.limit_bytes;
}
// Never more than its size, so that what is left is no less than nothing.
uint64_t Used(const MemoryView& view) {
  return Total(view, view.used_bytes);
}

// Both libraries have one function for the size and one for what is in use, with the kind of memory.
template <typename Device, typename View>
int SmiMemory(const char* library, const char* name, View view_of, bool is_total, Device device, int type,
              uint64_t* out) {
  const auto real = Real<int (*)(Device, int, uint64_t*)>(library, name);
  const int result = real != nullptr ? real(device, type, out) : kSmiNotSupported;
  if (result != 0 || out == nullptr || type != kVideoMemory) return result;
  const MemoryView view = view_of(device);
  if (view.limit_bytes != 0) *out = is_total ? Total(view, *out) : Used(view);
  return result;
}

struct AmdSmiVramUsage {  // amdsmi_vram_usage_t, in MiB
  uint32_t total, used;
};

}  // namespace
}  // namespace xschedd::shim

int nvmlDeviceGetMemoryInfo(void* device, void* memory) {
  using namespace xschedd::shim;
  return NvmlMemoryInfo(__func__, device, static_cast<NvmlMemory*>(memory));
}
int nvmlDeviceGetMemoryInfo_v2(void* device, void* memory) {
  using namespace xschedd::shim;
  return NvmlMemoryInfo(__func__, device, static_cast<NvmlMemoryV2*>(memory));
}
int rsmi_dev_memory_total_get(uint32_t index, int type, uint64_t* out) {
  using namespace xschedd::shim;
  return SmiMemory(kRocmSmi, __func__, ViewOfRocmSmi, true, index, type, out);
}
int rsmi_dev_memory_usage_get(uint32_t index, int type, uint64_t* out) {
  using namespace xschedd::shim;
  return SmiMemory(kRocmSmi, __func__, ViewOfRocmSmi, false, index, type, out);
}
int amdsmi_get_gpu_memory_total(void* device, int type, uint64_t* out) {
  using namespace xschedd::shim;
  return SmiMemory(kAmdSmi, __func__, ViewOfAmdSmi, true, device, type, out);
}
int amdsmi_get_gpu_memory_usage(void* device, int type, uint64_t* out) {
  using namespace xschedd::shim;
  return SmiMemory(kAmdSmi, __func__, ViewOfAmdSmi, false, device, type, out);
}
int amdsmi_get_gpu_vram_usage(void* device, void* usage) {
  using namespace xschedd::shim;
  const auto real = Real<int (*)(void*, void*)>(kAmdSmi, __func__);
  const int result = real != nullptr ? real(device, usage) : kSmiNotSupported;
  if (result != 0 || usage == nullptr) return result;
  const MemoryView view = ViewOfAmdSmi(device);
  if (view.limit_bytes == 0) return result;
  auto* const out = static_cast<AmdSmiVramUsage*>(usage);
  out->total = static_cast<uint32_t>(Total(view, uint64_t{out->total} << 20) >> 20);
  out->used = static_cast<uint32_t>(Used(view) >> 20);
  return result;
}
