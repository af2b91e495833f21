// A code object loaded from a file and from memory: its kernels launched by hipModuleLaunchKernel and
// hipExtModuleLaunchKernel, its variables found. Argument: the code object (this file compiled with --genco).
#ifdef CODE_OBJECT
#include <hip/hip_runtime.h>
extern "C" __device__ int module_variable[4] = {1, 2, 3, 4};
extern "C" __global__ void add_to(int* values, int count, int amount) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += amount + module_variable[0];
}
#else
#include <hip/hip_ext.h>

#include <fstream>
#include <iterator>

#include "device_test.h"

namespace {

constexpr int kCount = 256;

void use(hipModule_t module) {
  hipFunction_t function;
  HIP(hipModuleGetFunction(&function, module, "add_to"));
  REQUIRE(hipModuleGetFunction(&function, module, "no_such_kernel") != hipSuccess);
  HIP(hipModuleGetFunction(&function, module, "add_to"));
  int* values = nullptr;
  HIP(hipMalloc(&values, kCount * sizeof(int)));
  HIP(hipMemset(values, 0, kCount * sizeof(int)));
  struct {
    int* values;
    int count;
    int amount;
  } packed = {values, kCount, 2};
  size_t size = sizeof packed;
  void* config[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                    HIP_LAUNCH_PARAM_END};
  HIP(hipModuleLaunchKernel(function, kCount / kBlock, 1, 1, kBlock, 1, 1, 0, nullptr, nullptr, config));
  int count = kCount;
  int amount = 5;
  void* arguments[] = {&values, &count, &amount};
  HIP(hipModuleLaunchKernel(function, kCount / kBlock, 1, 1, kBlock, 1, 1, 0, nullptr, arguments, nullptr));
  hipEvent_t from;
  hipEvent_t to;
  HIP(hipEventCreate(&from));
  HIP(hipEventCreate(&to));
  // Sizes in work items here, and the kernel's own start and end in the events.
  HIP(hipExtModuleLaunchKernel(function, kCount, 1, 1, kBlock, 1, 1, 0, nullptr, arguments, nullptr, from, to, 0));
  HIP(hipEventSynchronize(to));
  float ms = 0;
  HIP(hipEventElapsedTime(&ms, from, to));
  REQUIRE(ms > 0.99f && ms < 50.0f);
  REQUIRE(all_equal(read_back(values, kCount), 12));
  hipDeviceptr_t variable;
  size_t bytes = 0;
  HIP(hipModuleGetGlobal(&variable, &bytes, module, "module_variable"));
  REQUIRE(bytes == 16);
  REQUIRE(read_back(static_cast<int*>(variable), 4) == std::vector<int>({1, 2, 3, 4}));
  HIP(hipFree(values));
}

}  // namespace

int main(int argc, char** argv) {
  REQUIRE(argc == 2);
  hipModule_t module;
  HIP(hipModuleLoad(&module, argv[1]));
  use(module);
  HIP(hipModuleUnload(module));
  std::ifstream file(argv[1], std::ios::binary);
  const std::vector<char> image{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  HIP(hipModuleLoadData(&module, image.data()));
  use(module);
  HIP(hipModuleUnload(module));
}
#endif
