// Graphs: captured from two streams, built from nodes, launched several times; allocation ordered by stream (memory
// pools).
#include "device_test.h"

namespace {

constexpr int kCount = 256;

int* zeroed() {
  int* values = nullptr;
  HIP(hipMalloc(&values, kCount * sizeof(int)));
  HIP(hipMemset(values, 0, kCount * sizeof(int)));
  HIP(hipDeviceSynchronize());
  return values;
}

void captured() {
  int* values = zeroed();
  hipStream_t stream;
  hipStream_t side;
  hipEvent_t fork;
  hipEvent_t join;
  HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  HIP(hipStreamCreateWithFlags(&side, hipStreamNonBlocking));
  HIP(hipEventCreate(&fork));
  HIP(hipEventCreate(&join));
  HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  launch_add(values, kCount, 1, stream);
  HIP(hipEventRecord(fork, stream));
  HIP(hipStreamWaitEvent(side, fork, 0));
  launch_add(values, kCount / 2, 10, side);
  HIP(hipEventRecord(join, side));
  launch_add(values + kCount / 2, kCount / 2, 10, stream);
  HIP(hipStreamWaitEvent(stream, join, 0));
  launch_add(values, kCount, 100, stream);
  hipGraph_t graph;
  HIP(hipStreamEndCapture(stream, &graph));
  REQUIRE(all_equal(read_back(values, kCount), 0));
  hipGraphExec_t exec;
  HIP(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  for (int i = 0; i < 3; ++i)
    HIP(hipGraphLaunch(exec, stream));
  HIP(hipStreamSynchronize(stream));
  REQUIRE(all_equal(read_back(values, kCount), 333));
  HIP(hipGraphExecDestroy(exec));
  HIP(hipGraphDestroy(graph));
  HIP(hipStreamDestroy(stream));
  HIP(hipStreamDestroy(side));
  HIP(hipFree(values));
}

void built() {
  int* values = zeroed();
  hipGraph_t graph;
  HIP(hipGraphCreate(&graph, 0));
  int count = kCount;
  int amount = 21;
  void* arguments[] = {&values, &count, &amount};
  hipKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void*>(add_to);
  kernel.gridDim = dim3(kCount / kBlock);
  kernel.blockDim = dim3(kBlock);
  kernel.kernelParams = arguments;
  hipGraphNode_t first;
  hipGraphNode_t second;
  HIP(hipGraphAddKernelNode(&first, graph, nullptr, 0, &kernel));
  HIP(hipGraphAddKernelNode(&second, graph, &first, 1, &kernel));
  std::vector<int> host(kCount);
  hipGraphNode_t copy;
  HIP(hipGraphAddMemcpyNode1D(&copy, graph, &second, 1, host.data(), values, kCount * sizeof(int),
                              hipMemcpyDeviceToHost));
  hipGraphExec_t exec;
  HIP(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  hipStream_t stream;
  HIP(hipStreamCreate(&stream));
  HIP(hipGraphLaunch(exec, stream));
  HIP(hipStreamSynchronize(stream));
  REQUIRE(all_equal(host, 42));
  HIP(hipGraphExecDestroy(exec));
  HIP(hipGraphDestroy(graph));
  HIP(hipStreamDestroy(stream));
  HIP(hipFree(values));
}

void pools() {
  int supported = 0;
  HIP(hipDeviceGetAttribute(&supported, hipDeviceAttributeMemoryPoolsSupported, 0));
  REQUIRE(supported == 1);
  hipStream_t stream;
  HIP(hipStreamCreate(&stream));
  for (int i = 0; i < 10; ++i) {
    int* values = nullptr;
    HIP(hipMallocAsync(reinterpret_cast<void**>(&values), kCount * sizeof(int), stream));
    HIP(hipMemsetAsync(values, 0, kCount * sizeof(int), stream));
    launch_add(values, kCount, i, stream);
    std::vector<int> host(kCount);
    HIP(hipMemcpyAsync(host.data(), values, kCount * sizeof(int), hipMemcpyDeviceToHost, stream));
    HIP(hipFreeAsync(values, stream));
    HIP(hipStreamSynchronize(stream));
    REQUIRE(all_equal(host, i));
  }
  hipMemPool_t pool;
  HIP(hipDeviceGetDefaultMemPool(&pool, 0));
  HIP(hipMemPoolTrimTo(pool, 0));
  HIP(hipStreamDestroy(stream));
}

void cooperative() {
  int* values = zeroed();
  int count = kCount;
  int amount = 6;
  void* arguments[] = {&values, &count, &amount};
  HIP(hipLaunchCooperativeKernel(reinterpret_cast<void*>(add_to), dim3(kCount / kBlock), dim3(kBlock), arguments, 0,
                                 nullptr));
  HIP(hipDeviceSynchronize());
  REQUIRE(all_equal(read_back(values, kCount), 6));
  HIP(hipFree(values));
}

}  // namespace

int main() {
  setenv("HIP_MEM_POOL_SUPPORT", "1", 0);  // off by default in ROCm 5
  captured();
  built();
  pools();
  cooperative();
}
