// Under a limit of device memory (XSCHEDD_MEMORY): one allocation of each kind that fits, one more that is refused as
// out of memory, and that fits after a free.
//
//   allocations LIMIT_MIB [no-refusals]    every kind has to be refused as above; with `no-refusals`, no kind may be
//   allocations LIMIT_MIB smi ROCM_SMI AMDSMI [none]   what these two libraries say (fake_smi.c), under the limit or
//   none allocations LIMIT_MIB wait             allocates more than half, says "ready", and asks for as much again for
//   each
//                                          line of standard input: "refused" or "given"
//
// A kind that this runtime does not have on this device is named on standard error, and left out. The last line is as
// in program.h. Thread rule: main thread.
#include <dlfcn.h>

#include <functional>
#include <iterator>
#include <string>

#include "program.h"

namespace {

std::size_t g_limit = 0;
int g_wrong = 0;
int g_tried = 0;

#define EXPECT(condition)                                                        \
  do {                                                                           \
    if (!(condition)) {                                                          \
      std::fprintf(stderr, "%s:%d: not so: %s\n", g_kind, __LINE__, #condition); \
      ++g_wrong;                                                                 \
    }                                                                            \
  } while (0)
const char* g_kind = "";

struct Kind {
  const char* name;
  std::function<hipError_t(void** out, std::size_t bytes)> allocate;
  std::function<hipError_t(void* memory)> free;
};

hipStream_t g_stream;
hipMemPool_t g_pool;

hipError_t Array(void** out, std::size_t bytes) {
  const hipChannelFormatDesc format = hipCreateChannelDesc(32, 32, 32, 32, hipChannelFormatKindFloat);
  return hipMallocArray(reinterpret_cast<hipArray**>(out), &format, 1024, bytes / 16 / 1024, 0);
}
hipError_t Volume(void** out, std::size_t bytes) {
  const hipChannelFormatDesc format = hipCreateChannelDesc(32, 0, 0, 0, hipChannelFormatKindFloat);
  return hipMalloc3DArray(reinterpret_cast<hipArray**>(out), &format, hipExtent{256, 256, bytes / 4 / 256 / 256}, 0);
}
hipError_t DriverArray(void** out, std::size_t bytes) {
  const HIP_ARRAY_DESCRIPTOR shape{1024, bytes / 4 / 1024, HIP_AD_FORMAT_FLOAT, 1};
  return hipArrayCreate(reinterpret_cast<hipArray**>(out), &shape);
}
hipError_t FreeArray(void* array) {
  return hipFreeArray(static_cast<hipArray*>(array));
}
hipError_t Pitch(void** out, std::size_t bytes) {
  std::size_t pitch = 0;
  return hipMallocPitch(out, &pitch, 4096, bytes / 4096);
}
hipError_t Box(void** out, std::size_t bytes) {
  hipPitchedPtr box{};
  const hipError_t result = hipMalloc3D(&box, hipExtent{4096, 16, bytes / 4096 / 16});
  if (result == hipSuccess) *out = box.ptr;
  return result;
}
hipError_t Physical(void** out, std::size_t bytes) {
  hipMemAllocationProp with{};
  with.type = hipMemAllocationTypePinned;
  with.location = {hipMemLocationTypeDevice, 0};
  return hipMemCreate(reinterpret_cast<hipMemGenericAllocationHandle_t*>(out), bytes, &with, 0);
}

// The pool keeps what it gets back, which counts until it has given it back in turn.
hipError_t FreeIntoPool(void* memory) {
  hipError_t result = hipFreeAsync(memory, g_stream);
  if (result == hipSuccess) result = hipStreamSynchronize(g_stream);
  return result == hipSuccess ? hipMemPoolTrimTo(g_pool, 0) : result;
}

const Kind kKinds[] = {
    {"hipMalloc", [](void** out, std::size_t bytes) { return hipMalloc(out, bytes); }, hipFree},
    {"hipExtMallocWithFlags",
     [](void** out, std::size_t bytes) { return hipExtMallocWithFlags(out, bytes, hipDeviceMallocFinegrained); },
     hipFree},
    {"hipMallocManaged", [](void** out, std::size_t bytes) { return hipMallocManaged(out, bytes); }, hipFree},
    {"hipMallocPitch", Pitch, hipFree},
    {"hipMalloc3D", Box, hipFree},
    {"hipMallocArray", Array, FreeArray},
    {"hipMalloc3DArray", Volume, FreeArray},
    {"hipArrayCreate", DriverArray, [](void* array) { return hipArrayDestroy(static_cast<hipArray*>(array)); }},
    {"hipMallocAsync", [](void** out, std::size_t bytes) { return hipMallocAsync(out, bytes, g_stream); },
     FreeIntoPool},
    {"hipMallocFromPoolAsync",
     [](void** out, std::size_t bytes) { return hipMallocFromPoolAsync(out, bytes, g_pool, g_stream); }, FreeIntoPool},
    {"hipMemCreate", Physical,
     [](void* memory) { return hipMemRelease(static_cast<hipMemGenericAllocationHandle_t>(memory)); }},
};

bool IsHere(const Kind& kind) {
  void* memory = nullptr;
  const hipError_t result = kind.allocate(&memory, g_limit / 16);
  if (result == hipSuccess) {
    EXPECT(kind.free(memory) == hipSuccess);
    return true;
  }
  std::fprintf(stderr, "not here: %s gives error %d\n", kind.name, static_cast<int>(result));
  (void)hipGetLastError();
  return false;
}

void Try(const Kind& kind, bool refuses) {
  g_kind = kind.name;
  if (!IsHere(kind)) return;
  ++g_tried;
  const std::size_t bytes = g_limit / 8 * 5;
  void* first = nullptr;
  void* const untouched = &g_tried;
  void* second = untouched;
  EXPECT(kind.allocate(&first, bytes) == hipSuccess);
  EXPECT(hipGetLastError() == hipSuccess);
  std::size_t free = 0;
  std::size_t total = 0;
  if (refuses) {
    EXPECT(kind.allocate(&second, bytes) == hipErrorOutOfMemory && second == untouched);
    EXPECT(hipGetLastError() == hipErrorOutOfMemory && hipGetLastError() == hipSuccess);
    EXPECT(hipMemGetInfo(&free, &total) == hipSuccess && total == g_limit && free <= g_limit - bytes);
    EXPECT(kind.free(first) == hipSuccess);
    EXPECT(kind.allocate(&second, bytes) == hipSuccess);
    EXPECT(kind.free(second) == hipSuccess);
    EXPECT(hipMemGetInfo(&free, &total) == hipSuccess && total == g_limit && free == g_limit);
  } else {
    EXPECT(kind.allocate(&second, bytes) == hipSuccess);
    EXPECT(kind.free(first) == hipSuccess && kind.free(second) == hipSuccess);
    EXPECT(hipMemGetInfo(&free, &total) == hipSuccess && total > g_limit * 4);
  }
}

// What a device is as large as.
void Shown(bool refuses) {
  g_kind = "properties";
  hipDeviceProp_t properties{};
  std::size_t total = 0;
  EXPECT(hipGetDeviceProperties(&properties, 0) == hipSuccess && hipDeviceTotalMem(&total, 0) == hipSuccess);
  EXPECT((properties.totalGlobalMem == g_limit) == refuses && (total == g_limit) == refuses);
  EXPECT(properties.multiProcessorCount > 0);
}

// The libraries' numbers for one device of ours and one of others: total and used, in bytes.
int Smi(const char* rocm_smi, const char* amdsmi, bool is_limited) {
  g_kind = "smi";
  constexpr std::uint64_t kTotal = std::uint64_t{64} << 30;
  constexpr std::uint64_t kUsed = std::uint64_t{40} << 30;
  constexpr int kVideo = 0;
  constexpr int kHost = 1;
  void* const rocm = dlopen(rocm_smi, RTLD_NOW);
  void* const amd = dlopen(amdsmi, RTLD_NOW);
  EXPECT(rocm != nullptr && amd != nullptr);
  if (g_wrong != 0) return 1;
  void* memory = nullptr;
  E2E_CHECK(hipMalloc(&memory, g_limit / 4));
  using RocmGet = int (*)(std::uint32_t, int, std::uint64_t*);
  using AmdGet = int (*)(void*, int, std::uint64_t*);
  const auto rocm_total = reinterpret_cast<RocmGet>(dlsym(rocm, "rsmi_dev_memory_total_get"));
  const auto rocm_used = reinterpret_cast<RocmGet>(dlsym(rocm, "rsmi_dev_memory_usage_get"));
  const auto amd_total = reinterpret_cast<AmdGet>(dlsym(amd, "amdsmi_get_gpu_memory_total"));
  const auto amd_used = reinterpret_cast<AmdGet>(dlsym(amd, "amdsmi_get_gpu_memory_usage"));
  const auto amd_both = reinterpret_cast<int (*)(void*, std::uint32_t*)>(dlsym(amd, "amdsmi_get_gpu_vram_usage"));
  for (const bool is_ours : {true, false}) {
    const bool is_changed = is_limited && is_ours;
    const std::uint64_t total = is_changed ? g_limit : kTotal;
    const std::uint64_t used = is_changed ? g_limit / 4 : kUsed;
    const std::uint32_t index = is_ours ? 0 : 1;
    void* const handle = reinterpret_cast<void*>(static_cast<std::uintptr_t>(is_ours ? 1 : 2));
    std::uint64_t value = 0;
    std::uint32_t both[2] = {};
    EXPECT(rocm_total(index, kVideo, &value) == 0 && value == total);
    EXPECT(rocm_used(index, kVideo, &value) == 0 && value == used);
    EXPECT(rocm_total(index, kHost, &value) == 0 && value == kTotal);
    EXPECT(amd_total(handle, kVideo, &value) == 0 && value == total);
    EXPECT(amd_used(handle, kVideo, &value) == 0 && value == used);
    EXPECT(amd_both(handle, both) == 0 && both[0] == total >> 20 && both[1] == used >> 20);
  }
  if (g_wrong == 0) std::printf("right: 0 launches, 0 submissions\n");
  return g_wrong == 0 ? 0 : 1;
}

int Wait() {
  void* memory = nullptr;
  E2E_CHECK(hipMalloc(&memory, g_limit / 8 * 5));
  std::printf("ready\n");
  std::fflush(stdout);
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    if (c != '\n') continue;
    void* more = nullptr;
    const hipError_t result = hipMalloc(&more, g_limit / 8 * 5);
    if (result == hipSuccess) E2E_CHECK(hipFree(more));
    std::printf(result == hipSuccess ? "given\n" : result == hipErrorOutOfMemory ? "refused\n" : "wrong\n");
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  g_limit = argc > 1 ? std::strtoull(argv[1], nullptr, 10) << 20 : 0;
  const std::string mode = argc > 2 ? argv[2] : "";
  if (mode == "wait") return Wait();
  if (mode == "smi" && argc > 4) return Smi(argv[3], argv[4], argc == 5);
  E2E_CHECK(hipStreamCreate(&g_stream));
  E2E_CHECK(hipDeviceGetDefaultMemPool(&g_pool, 0));
  Shown(mode != "no-refusals");
  for (const Kind& kind : kKinds)
    Try(kind, mode != "no-refusals");
  if (g_wrong != 0) return 1;
  std::printf("right: 0 launches, 0 submissions, %d kinds of %d\n", g_tried, static_cast<int>(std::size(kKinds)));
  return 0;
}
