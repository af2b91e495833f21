#include "tools/softgpu/hsa/kernel_registry.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "tools/softgpu/hsa/runtime.h"

namespace softgpu {

namespace {

using Export = const softgpu_kernel_table* (*)(uint32_t);

struct Kernels {
  std::shared_mutex lock;
  std::unordered_map<uint64_t, std::unique_ptr<Kernel>> by_object;
  std::once_flag loaded;
  std::unordered_map<std::string, const softgpu_kernel*> host;
};

Kernels& kernels() {
  static auto* k = new Kernels;  // leaked, see runtime.h
  return *k;
}

// softgpu_spin_us(uint64_t microseconds): a kernel that takes as long as its argument says, for tests and
// demonstrations.
uint64_t spin_cost(const softgpu_dispatch* dispatch) {
  uint64_t microseconds = 0;
  std::memcpy(&microseconds, dispatch->kernarg, sizeof microseconds);
  return microseconds * 1000;
}

// softgpu_mix(uint32_t* data, uint32_t salt, uint32_t rounds): each work item does value = value * 1664525 + (salt ^
// item) on its word so many times, for tests whether each launch has happened, in order. All rounds are one
// multiplication and one addition: value * factor + (salt ^ item) * sum.
void mix(const softgpu_dispatch* dispatch) {
  struct {
    uint32_t* data;
    uint32_t salt;
    uint32_t rounds;
  } arguments{};
  std::memcpy(&arguments, dispatch->kernarg, sizeof arguments);
  uint32_t factor = 1;
  uint32_t sum = 0;
  for (uint32_t round = 0; round < arguments.rounds; ++round) {
    sum = sum * 1'664'525u + 1;
    factor *= 1'664'525u;
  }
  for (uint32_t item = 0; item < dispatch->grid_size[0]; ++item)
    arguments.data[item] = arguments.data[item] * factor + (arguments.salt ^ item) * sum;
}

// softgpu_fault(uint64_t microseconds): the same, followed by a fault from which the device cannot continue.
constexpr softgpu_kernel kFault = {"softgpu_fault", nullptr, spin_cost};

constexpr softgpu_kernel kBuiltIn[] = {
    {"softgpu_spin_us", nullptr, spin_cost},
    {"_Z15softgpu_spin_usm", nullptr, spin_cost},  // the same without extern "C"
    {"softgpu_mix", mix, nullptr},
};

void add_table(const softgpu_kernel_table* table, const char* origin) {
  if (table == nullptr || table->abi_version != SOFTGPU_ABI_VERSION) {
    std::fprintf(stderr, "softgpu: %s: no kernel table of version %u; build it against this softgpu.h\n", origin,
                 SOFTGPU_ABI_VERSION);
    return;
  }
  for (uint32_t i = 0; i < table->count; ++i)
    kernels().host.try_emplace(table->kernels[i].name, &table->kernels[i]);
}

void load_tables() {
  for (const std::string& path : runtime()->settings.kernel_libraries) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* symbol = library != nullptr ? dlsym(library, "softgpu_kernels") : nullptr;
    if (symbol == nullptr) {
      std::fprintf(stderr, "softgpu: no kernels from SOFTGPU_KERNELS: %s\n", dlerror());
      continue;
    }
    add_table(reinterpret_cast<Export>(symbol)(SOFTGPU_ABI_VERSION), path.c_str());
  }
  if (void* symbol = dlsym(RTLD_DEFAULT, "softgpu_kernels")) {
    add_table(reinterpret_cast<Export>(symbol)(SOFTGPU_ABI_VERSION), "the program");
  }
  for (const softgpu_kernel& kernel : kBuiltIn)
    kernels().host.try_emplace(kernel.name, &kernel);
  kernels().host.try_emplace(kFault.name, &kFault);
}

}  // namespace

void add_kernel(uint64_t kernel_object, Kernel kernel) {
  Kernels& k = kernels();
  const std::unique_lock guard(k.lock);
  k.by_object[kernel_object] = std::make_unique<Kernel>(std::move(kernel));
}

void remove_kernel(uint64_t kernel_object) {
  Kernels& k = kernels();
  const std::unique_lock guard(k.lock);
  k.by_object.erase(kernel_object);
}

const Kernel* find_kernel(uint64_t kernel_object) {
  Kernels& k = kernels();
  const std::shared_lock guard(k.lock);
  const auto it = k.by_object.find(kernel_object);
  return it != k.by_object.end() ? it->second.get() : nullptr;
}

bool ends_in_fault(const Kernel& kernel) {
  return kernel.host == &kFault;
}

const softgpu_kernel* find_host_kernel(const std::string& name) {
  Kernels& k = kernels();
  std::call_once(k.loaded, load_tables);
  const auto it = k.host.find(name);
  return it != k.host.end() ? it->second : nullptr;
}

}  // namespace softgpu
