#include "client-shim/stub/other_libraries.h"

#include <string.h>

#include "client-shim/hip/hardware_queues.h"
#include "client-shim/hip/kernel_stamps.h"
#include "client-shim/stub/elf_objects.h"
#include "client-shim/stub/monitoring.h"

namespace xschedd::shim {
namespace {

struct Entry {
  const char* library;
  const char* name;
  void* function;
};
// A constant: the object has no constructors.
#define XS_ENTRY(library, name) \
  { library, #name, reinterpret_cast<void*>(&::name) }
const Entry kEntries[] = {
    XS_ENTRY(kNvml, nvmlDeviceGetMemoryInfo),
    XS_ENTRY(kNvml, nvmlDeviceGetMemoryInfo_v2),
    XS_ENTRY(kRocmSmi, rsmi_dev_memory_total_get),
    XS_ENTRY(kRocmSmi, rsmi_dev_memory_usage_get),
    XS_ENTRY(kAmdSmi, amdsmi_get_gpu_memory_total),
    XS_ENTRY(kAmdSmi, amdsmi_get_gpu_memory_usage),
    XS_ENTRY(kAmdSmi, amdsmi_get_gpu_vram_usage),
    XS_ENTRY(hip::kHsaLibrary, hsa_queue_create),
    XS_ENTRY(hip::kHsaLibrary, hsa_queue_destroy),
    XS_ENTRY(hip::kHsaLibrary, hsa_amd_queue_set_priority),
    XS_ENTRY(hip::kHsaLibrary, hsa_amd_profiling_get_dispatch_time),
};
#undef XS_ENTRY

bool MayBeOurs(const char* name) {
  for (const char* start : {"nvmlDeviceGetMem", "rsmi_dev_mem", "amdsmi_get_gpu_", "hsa_queue_", "hsa_amd_"}) {
    if (strncmp(name, start, strlen(start)) == 0) return true;
  }
  return false;
}

const Entry* EntryOf(const char* name) {
  for (const Entry& entry : kEntries) {
    if (strcmp(entry.name, name) == 0) return &entry;
  }
  return nullptr;
}

bool IsEntry(const char* name) {
  return EntryOf(name) != nullptr;
}

void* FunctionByName(const char* name) {
  const Entry* const entry = EntryOf(name);
  return entry != nullptr ? entry->function : nullptr;
}

bool Exports(const char* name) {
  const Entry* const entry = EntryOf(name);
  return entry != nullptr && FindSymbol(FindObjectByName(entry->library), name) != nullptr;
}

bool IsLibraryCode(const void* address) {
  for (const char* library : {kNvml, kRocmSmi, kAmdSmi, hip::kHsaLibrary}) {
    if (FindObjectByName(library).Covers(address)) return true;
  }
  return false;
}

}  // namespace

const Exposed kOtherLibraries = {MayBeOurs, IsEntry, FunctionByName, Exports, IsLibraryCode};

}  // namespace xschedd::shim
