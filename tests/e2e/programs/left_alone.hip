// Calls the functions of client-shim/hip/entry_points.def that take a stream or concern work but are not wrapped: none
// waits at a gate, and none makes the device do anything.
//
// Prints "ready" with its streams made, waits for a line on standard input, makes the calls, and ends with the line of
// every program here, with no launches and no submissions.
#include <hip/hip_ext.h>

#include <iostream>
#include <string>

#include "program.h"

int main(int argc, char** argv) {
  const char* code_object = argc > 1 ? argv[1] : "";
  hipStream_t one, other;
  E2E_CHECK(hipStreamCreate(&one));
  E2E_CHECK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
  std::cout << "ready" << std::endl;
  std::string line;
  std::getline(std::cin, line);

  // Order, and memory in stream order.
  hipEvent_t event;
  E2E_CHECK(hipEventCreate(&event));
  E2E_CHECK(hipEventRecord(event, one));
  E2E_CHECK(hipStreamWaitEvent(other, event, 0));
  E2E_CHECK(hipStreamWaitEvent(nullptr, event, 0));
  int has_pools = 0;
  E2E_CHECK(hipDeviceGetAttribute(&has_pools, hipDeviceAttributeMemoryPoolsSupported, 0));
  if (has_pools != 0) {
    hipMemPool_t pool;
    void* memory = nullptr;
    E2E_CHECK(hipDeviceGetDefaultMemPool(&pool, 0));
    E2E_CHECK(hipMallocAsync(&memory, 1 << 20, one));
    E2E_CHECK(hipFreeAsync(memory, one));
    E2E_CHECK(hipMallocFromPoolAsync(&memory, 1 << 20, pool, other));
    E2E_CHECK(hipFreeAsync(memory, other));
    E2E_CHECK(hipStreamSynchronize(one));
    E2E_CHECK(hipStreamSynchronize(other));
    E2E_CHECK(hipMemPoolTrimTo(pool, 0));
  }

  // Properties.
  unsigned flags = 0;
  int priority = 0;
  std::uint32_t mask[8] = {};
  E2E_CHECK(hipStreamGetFlags(one, &flags));
  E2E_CHECK(hipStreamGetPriority(one, &priority));
  E2E_CHECK(hipExtStreamGetCUMask(one, 8, mask));

  // A capture, and the executable graph of it.
  hipGraph_t graph;
  hipGraphExec_t executable;
  hipGraphNode_t node;
  hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  hipGraphExecUpdateResult result = hipGraphExecUpdateError;
  unsigned long long id = 0;
  E2E_CHECK(hipThreadExchangeStreamCaptureMode(&mode));
  E2E_CHECK(hipStreamBeginCapture(one, hipStreamCaptureModeRelaxed));
  scale_add<<<1, 1, 0, one>>>(nullptr, nullptr, 0, 0, 1);
  E2E_CHECK(hipGetLastError());
  E2E_CHECK(hipStreamIsCapturing(one, &status));
  E2E_CHECK(hipStreamGetCaptureInfo(one, &status, &id));
  E2E_CHECK(hipStreamEndCapture(one, &graph));
  E2E_CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
  E2E_CHECK(hipGraphExecUpdate(executable, graph, &node, &result));
  E2E_CHECK(hipGraphExecDestroy(executable));
  E2E_CHECK(hipGraphDestroy(graph));

  // Code.
  hipModule_t module;
  hipFunction_t function;
  E2E_CHECK(hipModuleLoad(&module, code_object));
  E2E_CHECK(hipModuleGetFunction(&function, module, "scale_add"));
  E2E_CHECK(hipModuleUnload(module));

  E2E_CHECK(hipEventDestroy(event));
  E2E_CHECK(hipStreamDestroy(one));
  E2E_CHECK(hipStreamDestroy(other));
  e2e::Finish({}, {}, 0, 0);
}
