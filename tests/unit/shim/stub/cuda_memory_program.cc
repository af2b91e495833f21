// A program under the preloaded stub, with a fake CUDA driver and a client library that keeps the real account: each
// kind of allocation counts what it takes, is refused above the limit without reaching the driver, and fits after a
// free. usage: cuda_memory_program FAKE_CUDA FAKE_NVML
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "tests/unit/shim/stub/expect.h"

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr int kOutOfMemory = 2;
constexpr int kDevice = 3;  // the fake driver's current one

void* g_driver = nullptr;
void* g_client = nullptr;

template <typename... Arguments>
int Call(const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(g_driver, name));
  EXPECT(function != nullptr);
  return function != nullptr ? function(arguments...) : -1;
}
std::uint64_t Counted(int device = kDevice) {
  return reinterpret_cast<std::uint64_t (*)(unsigned)>(dlsym(g_client, "fake_client_memory"))(
      static_cast<unsigned>(device));
}
void Limit(std::uint64_t bytes) {
  reinterpret_cast<void (*)(std::uint64_t)>(dlsym(g_client, "fake_client_limit_memory"))(bytes);
}
void Refuse(int yes) {
  reinterpret_cast<void (*)(int)>(dlsym(g_driver, "fake_cuda_memory_refuse"))(yes);
}

using Out = std::uint64_t*;
using Value = std::uint64_t;
struct Shape {  // CUDA_ARRAY_DESCRIPTOR
  std::size_t width, height;
  unsigned format, channels;
};
struct Shape3D {  // CUDA_ARRAY3D_DESCRIPTOR
  std::size_t width, height, depth;
  unsigned format, channels, flags;
};
struct Properties {  // CUmemAllocationProp, and the head of CUmemPoolProps
  int type = 1, handle_types = 0;
  int location_type = 1, location = kDevice;
  char rest[72] = {};
};

// One kind: it takes `bytes` with the driver's rounding, on `device`.
struct Kind {
  const char* name;
  std::uint64_t bytes;
  std::function<int(Out)> allocate;
  std::function<int(Value)> free;
  int device = kDevice;
};

void EachKind(const Kind& kind) {
  std::printf("%s\n", kind.name);
  std::uint64_t first = 77;
  std::uint64_t second = 77;
  // Without a limit.
  Limit(0);
  EXPECT(kind.allocate(&first) == 0 && first != 77 && Counted(kind.device) == kind.bytes);
  // One fits, two do not: the driver is not asked, and the program's variable stays as it is.
  Limit(kind.bytes + kind.bytes / 2);
  const int calls = Call("fake_cuda_memory_calls");
  EXPECT(kind.allocate(&second) == kOutOfMemory && second == 77 && Call("fake_cuda_memory_calls") == calls);
  EXPECT(Counted(kind.device) == kind.bytes);
  // A free that the driver refuses frees nothing.
  Refuse(1);
  EXPECT(kind.free(first) != 0 && Counted(kind.device) == kind.bytes);
  Refuse(0);
  EXPECT(kind.free(first) == 0 && Counted(kind.device) == 0);
  // Now there is room; and a call that the driver refuses takes none.
  Refuse(1);
  EXPECT(kind.allocate(&second) == 1 && Counted(kind.device) == 0);
  Refuse(0);
  EXPECT(kind.allocate(&second) == 0 && Counted(kind.device) == kind.bytes);
  EXPECT(kind.free(second) == 0 && kind.free(second) == 0 && Counted(kind.device) == 0);
  Limit(0);
}

void Kinds(Value pool) {
  static const Shape shape{1024, 512, 0x20, 4};          // floats
  static const Shape3D volume{64, 32, 16, 0x01, 2, 0};   // bytes
  static const Shape3D levels{256, 256, 0, 0x10, 4, 0};  // halves
  static const Properties here;
  static Properties there;
  there.location = 1;
  const auto free = [](Value at) { return Call<Value>("cuMemFree_v2", at); };
  const auto destroy = [](Value array) { return Call<Value>("cuArrayDestroy", array); };
  const Kind kinds[] = {
      {"plain", 100 * kMiB, [](Out out) { return Call<Out, std::size_t>("cuMemAlloc_v2", out, 100 * kMiB); }, free},
      {"managed", 100 * kMiB,
       [](Out out) { return Call<Out, std::size_t, unsigned>("cuMemAllocManaged", out, 100 * kMiB, 1u); }, free},
      {"pitch", 1024 * 1000,
       [](Out out) {
         std::size_t pitch = 0;
         return Call<Out, std::size_t*, std::size_t, std::size_t, unsigned>("cuMemAllocPitch_v2", out, &pitch, 900,
                                                                            1000, 4u);
       },
       free},
      {"array", 1024 * 512 * 16, [](Out out) { return Call<Out, const Shape*>("cuArrayCreate_v2", out, &shape); },
       destroy},
      {"volume", 64 * 32 * 16 * 2,
       [](Out out) { return Call<Out, const Shape3D*>("cuArray3DCreate_v2", out, &volume); }, destroy},
      {"mipmap", (256 * 256 + 128 * 128 + 64 * 64) * 8,
       [](Out out) { return Call<Out, const Shape3D*, unsigned>("cuMipmappedArrayCreate", out, &levels, 3u); },
       [](Value array) { return Call<Value>("cuMipmappedArrayDestroy", array); }},
      {"async", 50 * kMiB,
       [](Out out) { return Call<Out, std::size_t, void*>("cuMemAllocAsync", out, 50 * kMiB, nullptr); },
       [](Value at) { return Call<Value, void*>("cuMemFreeAsync", at, nullptr); }},
      {"async, freed by the plain call", 50 * kMiB,
       [](Out out) { return Call<Out, std::size_t, void*>("cuMemAllocAsync", out, 50 * kMiB, nullptr); }, free},
      {"pool of another device", 50 * kMiB,
       [pool](Out out) {
         return Call<Out, std::size_t, Value, void*>("cuMemAllocFromPoolAsync", out, 50 * kMiB, pool, nullptr);
       },
       [](Value at) { return Call<Value, void*>("cuMemFreeAsync", at, nullptr); }, 1},
      {"physical", 64 * kMiB,
       [](Out out) {
         return Call<Out, std::size_t, const Properties*, unsigned long long>("cuMemCreate", out, 64 * kMiB, &here,
                                                                              0ull);
       },
       [](Value memory) { return Call<Value>("cuMemRelease", memory); }},
      {"physical of another device", 64 * kMiB,
       [](Out out) {
         return Call<Out, std::size_t, const Properties*, unsigned long long>("cuMemCreate", out, 64 * kMiB, &there,
                                                                              0ull);
       },
       [](Value memory) { return Call<Value>("cuMemRelease", memory); }, 1},
  };
  for (const Kind& kind : kinds)
    EachKind(kind);
}

// Mapped memory stays after the release of its handle; a retained handle keeps it, too.
void VirtualMemory() {
  const Properties here;
  std::uint64_t memory = 0;
  std::uint64_t again = 0;
  EXPECT(
      (Call<Out, std::size_t, const Properties*, unsigned long long>("cuMemCreate", &memory, kMiB, &here, 0ull) == 0));
  EXPECT((Call<Value, std::size_t, std::size_t, Value, unsigned long long>("cuMemMap", 0x5000, kMiB, 0, memory, 0ull) ==
          0));
  EXPECT(Call<Value>("cuMemRelease", memory) == 0 && Counted() == kMiB);
  EXPECT((Call<Value, std::size_t>("cuMemUnmap", 0x5000, kMiB) == 0) && Counted() == 0);

  EXPECT(
      (Call<Out, std::size_t, const Properties*, unsigned long long>("cuMemCreate", &memory, kMiB, &here, 0ull) == 0));
  EXPECT((Call<Out, void*>("cuMemRetainAllocationHandle", &again, reinterpret_cast<void*>(memory)) == 0));
  EXPECT(again == memory && Call<Value>("cuMemRelease", memory) == 0 && Counted() == kMiB);
  EXPECT(Call<Value>("cuMemRelease", again) == 0 && Counted() == 0);

  // Host memory is none of the device's.
  Properties host;
  host.location_type = 2;
  EXPECT(
      (Call<Out, std::size_t, const Properties*, unsigned long long>("cuMemCreate", &memory, kMiB, &host, 0ull) == 0));
  EXPECT(Counted() == 0 && Counted(0) == 0);
}

// A node that can never fit is refused; one that fits counts with what the graphs keep, not here.
void Graphs() {
  struct Node {
    Properties pool;
    const void* access = nullptr;
    std::size_t access_count = 0, bytes = 0;
    Value address = 0;
  } node;
  struct AnyNode {
    int type = 10, reserved[3] = {};
    Node allocation;
  } any;
  std::uint64_t out = 77;
  const auto add = [&] {
    return Call<Out, void*, const void*, std::size_t, Node*>("cuGraphAddMemAllocNode", &out, nullptr, nullptr, 0,
                                                             &node);
  };
  const auto add_any = [&] {
    return Call<Out, void*, const void*, const void*, std::size_t, AnyNode*>("cuGraphAddNode_v2", &out, nullptr,
                                                                             nullptr, nullptr, 0, &any);
  };
  Limit(kGiB);
  node.bytes = any.allocation.bytes = kGiB + 1;
  EXPECT(add() == kOutOfMemory && add_any() == kOutOfMemory && out == 77);
  node.bytes = any.allocation.bytes = kGiB;
  EXPECT(add() == 0 && add_any() == 0 && out != 77 && Counted() == 0);
  any.type = 0;  // a kernel, whose parameters lie there
  any.allocation.bytes = ~std::size_t{0};
  EXPECT(add_any() == 0);
  Limit(0);
}

void HostileSizes() {
  std::uint64_t out = 77;
  Limit(kGiB);
  for (const std::size_t size : {~std::size_t{0}, ~std::size_t{0} / 2, std::size_t{1} << 63}) {
    EXPECT((Call<Out, std::size_t>("cuMemAlloc_v2", &out, size) == kOutOfMemory));
    std::size_t pitch = 0;
    EXPECT((Call<Out, std::size_t*, std::size_t, std::size_t, unsigned>("cuMemAllocPitch_v2", &out, &pitch, size, size,
                                                                        4u) == kOutOfMemory));
    const Shape3D shape{size, size, size, 0x20, 4, 0};
    EXPECT((Call<Out, const Shape3D*>("cuArray3DCreate_v2", &out, &shape) == kOutOfMemory));
    EXPECT((Call<Out, const Shape3D*, unsigned>("cuMipmappedArrayCreate", &out, &shape, ~0u) == kOutOfMemory));
  }
  // Null is for the driver to refuse. (The fake one does not look.)
  EXPECT((Call<Out, const Shape*>("cuArrayCreate_v2", &out, nullptr) == 0) && Counted() == 0);
  // An array whose memory is mapped later has none now.
  const Shape3D sparse{1u << 20, 1u << 20, 0, 0x20, 4, 0x40};
  EXPECT((Call<Out, const Shape3D*>("cuArray3DCreate_v2", &out, &sparse) == 0) && Counted() == 0);
  Limit(0);
}

// The limit is the device's size, and what is left of it is free.
void Shown() {
  std::size_t free = 0;
  std::size_t total = 0;
  const auto info = [&] { return Call<std::size_t*, std::size_t*>("cuMemGetInfo_v2", &free, &total); };
  EXPECT(info() == 0 && free == 90 * kGiB && total == 100 * kGiB);
  Limit(8 * kGiB);
  EXPECT(info() == 0 && free == 8 * kGiB && total == 8 * kGiB);
  std::uint64_t at = 0;
  EXPECT((Call<Out, std::size_t>("cuMemAlloc_v2", &at, 3 * kGiB) == 0));
  EXPECT(info() == 0 && free == 5 * kGiB && total == 8 * kGiB);
  EXPECT((Call<std::size_t*, int>("cuDeviceTotalMem_v2", &total, 1) == 0) && total == 8 * kGiB);
  EXPECT(reinterpret_cast<int (*)()>(dlsym(g_client, "fake_client_seen_device"))() == 1);
  Limit(2 * kGiB);  // less than there is already
  EXPECT(info() == 0 && free == 0 && total == 2 * kGiB);
  Limit(200 * kGiB);  // more than the device has
  EXPECT(info() == 0 && free == 90 * kGiB && total == 100 * kGiB);
  Limit(0);
  EXPECT(info() == 0 && free == 90 * kGiB && total == 100 * kGiB);
  // With its context goes its memory.
  EXPECT(Call<void*>("cuCtxDestroy_v2", reinterpret_cast<void*>(0x99)) == 0 && Counted() == 3 * kGiB);
  EXPECT(Call<void*>("cuCtxDestroy_v2", reinterpret_cast<void*>(0x10)) == 0 && Counted() == 0);
}

// The program's own NVML says the same of the device that is one of the driver's, and its own of any other.
void Nvml(const char* path) {
  struct Memory {
    unsigned long long total, free, used;
  } memory{};
  struct MemoryV2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
  } memory_v2{};
  void* const one = reinterpret_cast<void*>(1);
  void* const another = reinterpret_cast<void*>(2);
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  EXPECT(library != nullptr);
  if (library == nullptr) return;
  const auto get = reinterpret_cast<int (*)(void*, Memory*)>(dlsym(library, "nvmlDeviceGetMemoryInfo"));
  const auto get_v2 = reinterpret_cast<int (*)(void*, MemoryV2*)>(dlsym(library, "nvmlDeviceGetMemoryInfo_v2"));
  Dl_info info{};
  EXPECT(dladdr(dlsym(library, "nvmlDeviceGetMemoryBusWidth"), &info) != 0 &&
         std::strstr(info.dli_fname, "nvidia-ml") != nullptr);
  EXPECT(get(one, &memory) == 0 && memory.total == 100 * kGiB && memory.used == 40 * kGiB);
  std::uint64_t at = 0;
  EXPECT((Call<Out, std::size_t>("cuMemAlloc_v2", &at, 3 * kGiB) == 0));
  Limit(8 * kGiB);
  EXPECT(get(one, &memory) == 0 && memory.total == 8 * kGiB && memory.free == 5 * kGiB && memory.used == 3 * kGiB);
  EXPECT(get_v2(one, &memory_v2) == 0 && memory_v2.total == 8 * kGiB && memory_v2.free == 5 * kGiB &&
         memory_v2.used == 3 * kGiB && memory_v2.reserved == kGiB);
  EXPECT(get(another, &memory) == 0 && memory.total == 100 * kGiB && memory.used == 40 * kGiB);
  EXPECT(get(nullptr, &memory) == 2);
  Limit(0);
  EXPECT(get(one, &memory) == 0 && memory.total == 100 * kGiB);
  EXPECT(Call<Value>("cuMemFree_v2", at) == 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  g_driver = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  EXPECT(g_driver != nullptr);
  if (g_driver == nullptr) return 1;
  // An allocation starts the client: the limit may be the daemon's.
  std::uint64_t at = 0;
  EXPECT((Call<Out, std::size_t>("cuMemAlloc_v2", &at, 1) == 0) && Call<Value>("cuMemFree_v2", at) == 0);
  g_client = dlopen(std::getenv("XSCHEDD_CLIENT_LIB"), RTLD_NOW | RTLD_NOLOAD);
  EXPECT(g_client != nullptr);
  if (g_client == nullptr) return 1;
  Properties elsewhere;
  elsewhere.location = 1;
  std::uint64_t pool = 0;
  EXPECT((Call<Out, const Properties*>("cuMemPoolCreate", &pool, &elsewhere) == 0));
  Kinds(pool);
  EXPECT(Call<Value>("cuMemPoolDestroy", pool) == 0);
  VirtualMemory();
  Graphs();
  HostileSizes();
  Shown();
  Nvml(argv[2]);
  return g_failures == 0 ? 0 : 1;
}
