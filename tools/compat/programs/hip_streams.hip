// A plain hipcc program: default, blocking, non-blocking and per-thread streams, events across them, memory in stream order.
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
  hipStream_t blocking = nullptr;
  hipStream_t free_running = nullptr;
  hipEvent_t event = nullptr;
  float* data = nullptr;
  float* host = nullptr;
  NEED(hipMalloc(&data, kBytes));
  NEED(hipHostMalloc(&host, kBytes, hipHostMallocDefault));
  CALL(hipStreamCreate(&blocking));
  CALL(hipStreamCreateWithFlags(&free_running, hipStreamNonBlocking));
  CALL(hipEventCreate(&event));
  for (int round = 0; round < compat::Rounds(); ++round) {
    CALL(hipMemsetAsync(data, 0, kBytes, blocking));
    add_one<<<kN / 256, 256, 0, blocking>>>(data, kN);
    CALL(hipGetLastError());
    CALL(hipEventRecord(event, blocking));
    CALL(hipStreamWaitEvent(free_running, event, 0));
    add_one<<<kN / 256, 256, 0, free_running>>>(data, kN);
    CALL(hipGetLastError());
    CALL(hipStreamSynchronize(free_running));
    add_one<<<kN / 256, 256>>>(data, kN);
    CALL(hipGetLastError());
    add_one<<<kN / 256, 256, 0, hipStreamPerThread>>>(data, kN);
    CALL(hipGetLastError());
    CALL(hipMemcpyAsync(host, data, kBytes, hipMemcpyDeviceToHost, blocking));
    CALL(hipDeviceSynchronize());
  }
  CALL(hipMemcpy(host, data, kBytes, hipMemcpyDeviceToHost));
  CALL(hipEventDestroy(event));
  CALL(hipStreamDestroy(free_running));
  CALL(hipStreamDestroy(blocking));
  CALL(hipHostFree(host));
  CALL(hipFree(data));
  return compat::Finish();
}
