// A plain hipcc program: a graph captured from a stream, and one built node by node, each launched repeatedly.
#include <hip/hip_runtime.h>

#include "check.h"

__global__ void add_one(float* data, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) data[i] += 1.0F;
}

namespace {
constexpr int kN = 1 << 16;
constexpr size_t kBytes = kN * sizeof(float);
}  // namespace

int main() {
  hipStream_t stream = nullptr;
  float* data = nullptr;
  NEED(hipMalloc(&data, kBytes));
  CALL(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));

  hipGraph_t captured = nullptr;
  hipGraphExec_t captured_exec = nullptr;
  CALL(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  CALL(hipMemsetAsync(data, 0, kBytes, stream));
  for (int i = 0; i < 4; ++i) {
    add_one<<<kN / 256, 256, 0, stream>>>(data, kN);
    CALL(hipGetLastError());
  }
  NEED(hipStreamEndCapture(stream, &captured));
  NEED(hipGraphInstantiate(&captured_exec, captured, nullptr, nullptr, 0));

  hipGraph_t built = nullptr;
  hipGraphExec_t built_exec = nullptr;
  hipGraphNode_t node = nullptr;
  int n = kN;
  void* arguments[] = {&data, &n};
  hipKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(add_one);
  kernel.gridDim = dim3(kN / 256);
  kernel.blockDim = dim3(256);
  kernel.kernelParams = arguments;
  CALL(hipGraphCreate(&built, 0));
  CALL(hipGraphAddKernelNode(&node, built, nullptr, 0, &kernel));
  NEED(hipGraphInstantiate(&built_exec, built, nullptr, nullptr, 0));

  for (int round = 0; round < compat::Rounds(); ++round) {
    CALL(hipGraphLaunch(captured_exec, stream));
    CALL(hipGraphLaunch(built_exec, stream));
    CALL(hipStreamSynchronize(stream));
  }
  CALL(hipGraphExecDestroy(built_exec));
  CALL(hipGraphDestroy(built));
  CALL(hipGraphExecDestroy(captured_exec));
  CALL(hipGraphDestroy(captured));
  CALL(hipStreamDestroy(stream));
  CALL(hipFree(data));
  return compat::Finish();
}
