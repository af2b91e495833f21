// Allocation, copies of every direction and shape, fills, symbols, pinned and managed memory, a kernel's result.
#include "device_test.h"

__device__ int symbol[16];

namespace {

constexpr int kCount = 10'000;

void properties() {
  hipDeviceProp_t p;
  HIP(hipGetDeviceProperties(&p, 0));
  REQUIRE(std::string(p.name).find("software GPU") != std::string::npos);
  REQUIRE(p.multiProcessorCount == 80 && p.warpSize == 64);
  REQUIRE(p.totalGlobalMem > 190ull << 30);
}

void linear_copies() {
  std::vector<int> host(kCount);
  for (int i = 0; i < kCount; ++i)
    host[i] = i;
  int* a = nullptr;
  int* b = nullptr;
  HIP(hipMalloc(&a, kCount * sizeof(int)));
  HIP(hipMalloc(&b, kCount * sizeof(int)));
  HIP(hipMemcpy(a, host.data(), kCount * sizeof(int), hipMemcpyHostToDevice));
  HIP(hipMemcpy(b, a, kCount * sizeof(int), hipMemcpyDeviceToDevice));
  REQUIRE(read_back(b, kCount) == host);
  // Odd sizes and offsets take the runtime's unaligned kernels.
  HIP(hipMemcpy(reinterpret_cast<char*>(b) + 3, reinterpret_cast<char*>(a) + 1, 4'001, hipMemcpyDeviceToDevice));
  std::vector<int> mixed = host;
  std::memcpy(reinterpret_cast<char*>(mixed.data()) + 3, reinterpret_cast<const char*>(host.data()) + 1, 4'001);
  REQUIRE(read_back(b, kCount) == mixed);
  HIP(hipFree(a));
  HIP(hipFree(b));
}

void large_copy() {
  const size_t count = 16u << 20;
  std::vector<int> host(count, 5);
  int* device = nullptr;
  HIP(hipMalloc(&device, count * sizeof(int)));
  HIP(hipMemcpy(device, host.data(), count * sizeof(int), hipMemcpyHostToDevice));
  std::vector<int> back = read_back(device, count);
  REQUIRE(back == host);
  HIP(hipFree(device));
}

void pitched_copies() {
  const size_t width = 100 * sizeof(int);
  const size_t height = 50;
  std::vector<int> host(100 * 50);
  for (size_t i = 0; i < host.size(); ++i)
    host[i] = static_cast<int>(i);
  void* device = nullptr;
  size_t pitch = 0;
  HIP(hipMallocPitch(&device, &pitch, width, height));
  HIP(hipMemcpy2D(device, pitch, host.data(), width, width, height, hipMemcpyHostToDevice));
  void* other = nullptr;
  HIP(hipMalloc(&other, width * height));
  HIP(hipMemcpy2D(other, width, device, pitch, width, height, hipMemcpyDeviceToDevice));
  REQUIRE(read_back(static_cast<int*>(other), host.size()) == host);
  std::vector<int> back(host.size());
  HIP(hipMemcpy2D(back.data(), width, device, pitch, width, height, hipMemcpyDeviceToHost));
  REQUIRE(back == host);
  HIP(hipMemset2D(device, pitch, 0, width, height));
  HIP(hipMemcpy2D(back.data(), width, device, pitch, width, height, hipMemcpyDeviceToHost));
  REQUIRE(all_equal(back, 0));
  HIP(hipFree(device));
  HIP(hipFree(other));
}

void cubic_copies() {
  const size_t x = 20;
  const size_t y = 10;
  const size_t z = 5;
  std::vector<int> host(x * y * z);
  for (size_t i = 0; i < host.size(); ++i)
    host[i] = static_cast<int>(7 * i);
  hipPitchedPtr device;
  HIP(hipMalloc3D(&device, make_hipExtent(x * sizeof(int), y, z)));
  hipMemcpy3DParms parms = {};
  parms.srcPtr = make_hipPitchedPtr(host.data(), x * sizeof(int), x, y);
  parms.dstPtr = device;
  parms.extent = make_hipExtent(x * sizeof(int), y, z);
  parms.kind = hipMemcpyHostToDevice;
  HIP(hipMemcpy3D(&parms));
  std::vector<int> back(host.size());
  parms.srcPtr = device;
  parms.dstPtr = make_hipPitchedPtr(back.data(), x * sizeof(int), x, y);
  parms.kind = hipMemcpyDeviceToHost;
  HIP(hipMemcpy3D(&parms));
  REQUIRE(back == host);
  HIP(hipFree(device.ptr));
}

void fills() {
  unsigned char* device = nullptr;
  HIP(hipMalloc(&device, 1'003));
  HIP(hipMemset(device, 1, 1'003));
  HIP(hipMemset(device + 1, 0xab, 999));
  HIP(hipMemsetD32(reinterpret_cast<hipDeviceptr_t>(device), 0x01020304, 10));
  HIP(hipMemsetD16(reinterpret_cast<hipDeviceptr_t>(device + 100), 0x0506, 3));
  std::vector<unsigned char> back(1'003);
  HIP(hipMemcpy(back.data(), device, back.size(), hipMemcpyDeviceToHost));
  REQUIRE(back[0] == 4 && back[1] == 3 && back[39] == 1 && back[40] == 0xab);
  REQUIRE(back[100] == 6 && back[101] == 5 && back[105] == 5 && back[106] == 0xab);
  REQUIRE(back[999] == 0xab && back[1'000] == 1 && back[1'002] == 1);
  HIP(hipFree(device));
}

void symbols() {
  int host[16];
  for (int i = 0; i < 16; ++i)
    host[i] = 100 + i;
  HIP(hipMemcpyToSymbol(HIP_SYMBOL(symbol), host, sizeof host));
  int back[16] = {};
  HIP(hipMemcpyFromSymbol(back, HIP_SYMBOL(symbol), sizeof back));
  REQUIRE(std::memcmp(host, back, sizeof host) == 0);
  void* address = nullptr;
  size_t size = 0;
  HIP(hipGetSymbolAddress(&address, HIP_SYMBOL(symbol)));
  HIP(hipGetSymbolSize(&size, HIP_SYMBOL(symbol)));
  REQUIRE(address != nullptr && size == sizeof host);
}

void host_memory() {
  int* pinned = nullptr;
  HIP(hipHostMalloc(&pinned, kCount * sizeof(int)));
  for (int i = 0; i < kCount; ++i)
    pinned[i] = 1;
  launch_add(pinned, kCount, 2, nullptr);
  HIP(hipDeviceSynchronize());
  REQUIRE(pinned[0] == 3 && pinned[kCount - 1] == 3);
  HIP(hipHostFree(pinned));

  int* managed = nullptr;
  HIP(hipMallocManaged(&managed, kCount * sizeof(int)));
  for (int i = 0; i < kCount; ++i)
    managed[i] = 4;
  HIP(hipMemAdvise(managed, kCount * sizeof(int), hipMemAdviseSetReadMostly, 0));
  HIP(hipMemPrefetchAsync(managed, kCount * sizeof(int), 0, nullptr));
  launch_add(managed, kCount, 5, nullptr);
  HIP(hipDeviceSynchronize());
  REQUIRE(managed[0] == 9 && managed[kCount - 1] == 9);
  HIP(hipFree(managed));

  std::vector<int> registered(kCount, 6);
  HIP(hipHostRegister(registered.data(), kCount * sizeof(int), hipHostRegisterDefault));
  void* device = nullptr;
  HIP(hipHostGetDevicePointer(&device, registered.data(), 0));
  launch_add(static_cast<int*>(device), kCount, 1, nullptr);
  HIP(hipDeviceSynchronize());
  REQUIRE(all_equal(registered, 7));
  HIP(hipMemcpy(registered.data(), read_back(static_cast<int*>(device), 4).data(), 16, hipMemcpyHostToHost));
  HIP(hipHostUnregister(registered.data()));
}

void accounting() {
  size_t before = 0;
  size_t after = 0;
  size_t total = 0;
  HIP(hipMemGetInfo(&before, &total));
  void* device = nullptr;
  HIP(hipMalloc(&device, 64u << 20));
  HIP(hipMemGetInfo(&after, &total));
  REQUIRE(before - after >= 64u << 20);
  hipPointerAttribute_t attributes;
  HIP(hipPointerGetAttributes(&attributes, device));
#if HIP_VERSION_MAJOR >= 6
  const hipMemoryType kind = attributes.type;
#else
  const hipMemoryType kind = attributes.memoryType;
#endif
  REQUIRE(kind == hipMemoryTypeDevice && attributes.device == 0);
  HIP(hipFree(device));
  void* impossible = nullptr;
  REQUIRE(hipMalloc(&impossible, total + (1u << 30)) == hipErrorOutOfMemory);
}

}  // namespace

int main() {
  properties();
  linear_copies();
  large_copy();
  pitched_copies();
  cubic_copies();
  fills();
  symbols();
  host_memory();
  accounting();
}
