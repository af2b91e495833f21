#include "tools/xschedctl/nvml_memory.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string>
#include <vector>

namespace xschedd::ctl {
namespace {

// Of NVML's interface (https://docs.nvidia.com/deploy/nvml-api). 0 is success.
constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;
constexpr std::uint64_t kNotAvailable = ~std::uint64_t{0};
using Gpu = void*;
struct PciInfo {  // nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];  // "00000000:06:00.0"
};
struct ProcessInfo {  // nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

struct Nvml {
  int (*init)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*at)(unsigned, Gpu*) = nullptr;
  int (*pci)(Gpu, PciInfo*) = nullptr;
  int (*processes)(Gpu, unsigned*, ProcessInfo*) = nullptr;

  // False: it is not there, too old, or there is no driver.
  bool Load(const char* name) {
    void* const library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) return false;
    const auto get = [library](auto& function, const char* symbol) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, symbol));
      return function != nullptr;
    };
    return get(init, "nvmlInit_v2") && get(count, "nvmlDeviceGetCount_v2") &&
           get(at, "nvmlDeviceGetHandleByIndex_v2") && get(pci, "nvmlDeviceGetPciInfo_v3") &&
           get(processes, "nvmlDeviceGetComputeRunningProcesses_v3") && init() == kSuccess;
  }
};

// As the daemon writes it: a domain of four digits, in lower case.
std::string AddressOf(const PciInfo& pci) {
  std::string address(pci.bus_id, std::find(std::begin(pci.bus_id), std::end(pci.bus_id), '\0'));
  constexpr std::size_t kLong = sizeof "00000000:06:00.0" - 1;
  if (address.size() == kLong) address.erase(0, 4);
  std::transform(address.begin(), address.end(), address.begin(),
                 [](unsigned char byte) { return static_cast<char>(std::tolower(byte)); });
  return address;
}

std::vector<ProcessInfo> ProcessesOf(const Nvml& nvml, Gpu gpu) {
  std::vector<ProcessInfo> found(64);
  // Processes may start between two calls.
  for (int attempt = 0; attempt < 4; ++attempt) {
    auto size = static_cast<unsigned>(found.size());
    const int status = nvml.processes(gpu, &size, found.data());
    if (status == kSuccess) {
      found.resize(std::min<std::size_t>(size, found.size()));
      return found;
    }
    if (status != kInsufficientSize) return {};
    found.resize(2 * std::max<std::size_t>(size, found.size()));
  }
  return {};
}

}  // namespace

void AddNvmlMemory(DeviceMemory& memory, const char* library) {
  Nvml nvml;
  unsigned count = 0;
  if (!nvml.Load(library) || nvml.count(&count) != kSuccess) return;
  for (unsigned index = 0; index < count; ++index) {
    Gpu gpu = nullptr;
    PciInfo pci{};
    if (nvml.at(index, &gpu) != kSuccess || nvml.pci(gpu, &pci) != kSuccess) continue;
    for (const ProcessInfo& process : ProcessesOf(nvml, gpu))
      if (process.used_bytes != kNotAvailable) memory.AddToGpu(process.pid, AddressOf(pci), process.used_bytes);
  }
}

}  // namespace xschedd::ctl
