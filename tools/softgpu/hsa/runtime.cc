#include "tools/softgpu/hsa/runtime.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/sysinfo.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>

#include "tools/softgpu/hsa/not_implemented.h"

namespace softgpu {

namespace {

std::mutex init_lock;
int references = 0;
// release when set, acquire when read: a thread that sees the runtime sees it complete.
std::atomic<Runtime*> instance{nullptr};
std::atomic<bool> is_inert{false};

std::string target_id(const std::string& isa) {
  std::string base = "amdgcn-amd-amdhsa--" + isa;
  if (isa.find(':') != std::string::npos) return base;
  for (std::string_view with_features : {"gfx90a", "gfx940", "gfx941", "gfx942", "gfx950"}) {
    if (isa == with_features) return base + ":sramecc+:xnack-";
  }
  return base;
}

void add_pool(Agent& agent, hsa_amd_segment_t segment, uint32_t flags, uint64_t size) {
  agent.pools.push_back(std::make_unique<MemoryPool>(MemoryPool{&agent, segment, flags, size}));
}

void make_agents(Runtime& rt) {
  struct sysinfo info {};
  sysinfo(&info);
  const uint64_t host_bytes = static_cast<uint64_t>(info.totalram) * info.mem_unit;
  auto cpu = std::make_unique<Agent>(Agent{HSA_DEVICE_TYPE_CPU, 0, {}, {}});
  add_pool(*cpu, HSA_AMD_SEGMENT_GLOBAL, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED, host_bytes);
  add_pool(*cpu, HSA_AMD_SEGMENT_GLOBAL,
           HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED | HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT, host_bytes);
  add_pool(*cpu, HSA_AMD_SEGMENT_GLOBAL, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED, host_bytes);
  rt.agents.push_back(std::move(cpu));
  const uint64_t vram = rt.settings.vram_mb << 20;
  for (const uint32_t i : rt.settings.visible) {
    auto gpu = std::make_unique<Agent>(Agent{HSA_DEVICE_TYPE_GPU, i, rt.settings.pci[i], {}});
    add_pool(*gpu, HSA_AMD_SEGMENT_GLOBAL, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED, vram);
    add_pool(*gpu, HSA_AMD_SEGMENT_GLOBAL, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED, vram);
    add_pool(*gpu, HSA_AMD_SEGMENT_GROUP, 0, 65'536);
    rt.agents.push_back(std::move(gpu));
  }
}

std::string make_runtime() {
  auto [settings, error] = settings_from_environment();
  if (!error.empty()) return error;
  auto rt = std::make_unique<Runtime>();
  rt->settings = settings;
  if (!settings.durations_path.empty()) {
    error = rt->durations.load(settings.durations_path);
    if (!error.empty()) return error;
  }
  error = rt->region.attach(settings.name, settings.compute_units);
  if (!error.empty()) return error;
  if (rt->region.compute_units() != settings.compute_units) {
    std::fprintf(stderr, "softgpu: device '%s' exists with %u compute units, SOFTGPU_CUS=%u is ignored\n",
                 settings.name.c_str(), rt->region.compute_units(), settings.compute_units);
    rt->settings.compute_units = rt->region.compute_units();
  }
  rt->trace.open(settings.trace_prefix);
  rt->isa_name = target_id(settings.isa);
  make_agents(*rt);
  pthread_atfork(nullptr, nullptr, [] { is_inert.store(true, std::memory_order_relaxed); });
  instance.store(rt.release(), std::memory_order_release);
  return "";
}

// Not in hsa_shut_down, which the HIP runtime does not call on every exit path.
__attribute__((destructor)) void leave_at_exit() {
  if (Runtime* rt = runtime()) rt->region.leave();
}

}  // namespace

Agent* Runtime::gpu(uint32_t ordinal) {
  for (auto& a : agents) {
    if (a->is_gpu() && a->ordinal == ordinal) return a.get();
  }
  return nullptr;
}

Agent* Runtime::agent(hsa_agent_t handle) {
  for (auto& a : agents) {
    if (a->handle().handle == handle.handle) return a.get();
  }
  return nullptr;
}

MemoryPool* Runtime::pool(hsa_amd_memory_pool_t handle) {
  for (auto& a : agents) {
    for (auto& p : a->pools) {
      if (reinterpret_cast<uint64_t>(p.get()) == handle.handle) return p.get();
    }
  }
  return nullptr;
}

Runtime* runtime() {
  // relaxed: set in the child before anything else runs there.
  if (is_inert.load(std::memory_order_relaxed)) return nullptr;
  return instance.load(std::memory_order_acquire);
}

bool inert() {
  return is_inert.load(std::memory_order_relaxed);
}

unsigned not_implemented(const char* name) {
  static std::mutex lock;
  static std::set<std::string_view> reported;
  const std::lock_guard guard(lock);
  if (reported.insert(name).second) std::fprintf(stderr, "softgpu: %s is not implemented\n", name);
  return HSA_STATUS_ERROR;
}

void start_thread(const char* name, std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread([body = std::move(body)] {
    prctl(PR_SET_TIMERSLACK, 1);
    body();
  });
  pthread_setname_np(thread.native_handle(), name);
  thread.detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

SOFTGPU_API hsa_status_t hsa_init() {
  if (inert()) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  const std::lock_guard guard(init_lock);
  if (instance.load(std::memory_order_acquire) == nullptr) {
    const std::string error = make_runtime();
    if (!error.empty()) {
      std::fprintf(stderr, "softgpu: no device: %s\n", error.c_str());
      return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    }
  }
  ++references;
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_shut_down() {
  if (inert()) return HSA_STATUS_SUCCESS;
  const std::lock_guard guard(init_lock);
  if (references == 0) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  --references;
  return HSA_STATUS_SUCCESS;
}

}  // namespace softgpu
