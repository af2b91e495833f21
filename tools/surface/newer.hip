// Calls each entry point that is newer than ROCm 5.2.3 once, and those that newer runtimes implement differently, and
// checks how often the shim saw each. tools/surface/call runs it; the shim must have the counting client library
// (tests/unit/shim/stub/fake_client.cc). Argument: the code object of tests/e2e/programs/module_kernel.hip.
//
// Prints a line "RESULT: CALL" for each call, which must be the same without the shim. Exit code 1: the shim did not see
// a call as often as it should (once if it submits, never if it does not).
#include <dlfcn.h>
#include <hip/hip_ext.h>

#include <cstdio>

#include "client-shim/include/xschedd.h"
#include "tests/e2e/programs/kernels.h"

namespace {

int g_wrong = 0;

// -1: there is no shim.
long long SeenCalls() {
  static const auto get = reinterpret_cast<int (*)(xschedd_status*)>(dlsym(RTLD_DEFAULT, "xschedd_get_status"));
  xschedd_status status{};
  status.size = sizeof status;
  return get != nullptr && get(&status) == XSCHEDD_OK ? static_cast<long long>(status.submitted) : -1;
}

template <typename Function>
void Call(const char* what, long long expected, Function function) {
  const long long before = SeenCalls();
  std::printf("%d: %s\n", static_cast<int>(function()), what);
  if (before < 0 || SeenCalls() - before == expected) return;
  std::fprintf(stderr, "seen %lld times instead of %lld: %s\n", SeenCalls() - before, expected, what);
  ++g_wrong;
}
#define ONCE(call) Call(#call, 1, [&] { return call; })
#define NEVER(call) Call(#call, 0, [&] { return call; })

constexpr std::size_t kBytes = 1 << 16;

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  e2e::Value *y, *x, step = 1;
  std::uint32_t count = 64;
  std::uint64_t micros = 10;
  void* arguments[] = {&y, &x, &step, &count, &micros};
  const auto kernel = reinterpret_cast<const void*>(&scale_add);
  hipStream_t stream;
  NEVER(hipMalloc(reinterpret_cast<void**>(&y), kBytes));
  NEVER(hipMalloc(reinterpret_cast<void**>(&x), kBytes));
  NEVER(hipStreamCreate(&stream));
  ONCE(hipMemset(y, 0, kBytes));

  // ---- launches
  hipModule_t module;
  hipFunction_t function;
  NEVER(hipModuleLoad(&module, argv[1]));
  NEVER(hipModuleGetFunction(&function, module, "scale_add"));
  ONCE(hipExtModuleLaunchKernel(function, 64, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr, nullptr, nullptr, 0));
  ONCE(hipModuleLaunchCooperativeKernel(function, 1, 1, 1, 64, 1, 1, 0, stream, arguments));
  NEVER(hipLaunchHostFunc(stream, [](void*) {}, nullptr));
  NEVER(hipConfigureCall(dim3(1), dim3(64), 0, stream));
  NEVER(hipSetupArgument(&y, 8, 0));
  NEVER(hipSetupArgument(&x, 8, 8));
  NEVER(hipSetupArgument(&step, 4, 16));
  NEVER(hipSetupArgument(&count, 4, 20));
  NEVER(hipSetupArgument(&micros, 8, 24));
  ONCE(hipLaunchByPtr(kernel));
  NEVER(hipStreamSynchronize(stream));

  // ---- events, memory operations, graphs
  hipEvent_t event;
  hipStreamBatchMemOpParams operation{};
  operation.operation = operation.writeValue.operation = hipStreamMemOpWriteValue32;
  operation.writeValue.address = reinterpret_cast<hipDeviceptr_t>(y);
  NEVER(hipEventCreate(&event));
  NEVER(hipEventRecordWithFlags(event, stream, 0));
  NEVER(hipEventSynchronize(event));
  NEVER(hipStreamBatchMemOp(stream, 1, &operation, 0));
  hipGraph_t graph;
  hipGraphExec_t executable;
  hipGraphInstantiateParams with{};
  NEVER(hipGraphCreate(&graph, 0));
  NEVER(hipStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, hipStreamCaptureModeRelaxed));
  ONCE(hipLaunchKernel(kernel, dim3(1), dim3(64), arguments, 0, stream));  // captured, so the core lets it pass
  NEVER(hipStreamEndCapture(stream, &graph));
  NEVER(hipGraphInstantiateWithParams(&executable, graph, &with));
  with.flags = hipGraphInstantiateFlagUpload;
  with.uploadStream = stream;
  ONCE(hipGraphInstantiateWithParams(&executable, graph, &with));
  ONCE(hipGraphUpload(executable, stream));
  ONCE(hipGraphLaunch(executable, stream));
  NEVER(hipStreamSynchronize(stream));

  // ---- functions by address
  void* found = nullptr;
  hipDriverProcAddressQueryResult query_result;
  NEVER(hipGetProcAddress("hipMemsetAsync", &found, 60100, 0, &query_result));
  using Fill = hipError_t (*)(void*, int, std::size_t, hipStream_t);
  if (found != nullptr) ONCE(reinterpret_cast<Fill>(found)(y, 0, 64, stream));

  // ---- virtual memory: these calls wait, and are not counted
  hipMemAllocationProp property{};
  property.type = hipMemAllocationTypePinned;
  property.location.type = hipMemLocationTypeDevice;
  std::size_t size = 0;
  NEVER(hipMemGetAllocationGranularity(&size, &property, hipMemAllocationGranularityMinimum));
  void* place = nullptr;
  hipMemGenericAllocationHandle_t memory;
  NEVER(hipMemAddressReserve(&place, size, size, nullptr, 0));
  NEVER(hipMemCreate(&memory, size, &property, 0));
  NEVER(hipMemMap(place, size, 0, memory, 0));
  NEVER(hipMemUnmap(place, size));
  NEVER(hipMemRelease(memory));
  NEVER(hipMemAddressFree(place, size));

#if HIP_VERSION_MAJOR >= 7
  hipLaunchAttribute cooperative{};
  cooperative.id = hipLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  hipLaunchConfig_t config{dim3(1), dim3(64), 0, stream, &cooperative, 1};
  HIP_LAUNCH_CONFIG driver_config{1, 1, 1, 64, 1, 1, 0, stream, &cooperative, 1};
  ONCE(hipLaunchKernelExC(&config, kernel, arguments));
  ONCE(hipDrvLaunchKernelEx(&driver_config, function, arguments, nullptr));
  ONCE(hipLaunchKernelExC(nullptr, kernel, arguments));
  ONCE(hipDrvLaunchKernelEx(nullptr, function, arguments, nullptr));

  void *to = y, *from = x;
  std::size_t failed = 0, index = 0, bytes = 256;
  hipMemcpyAttributes attributes{};
  attributes.srcAccessOrder = hipMemcpySrcAccessOrderStream;
  ONCE(hipMemcpyBatchAsync(&to, &from, &bytes, 1, &attributes, &index, 1, &failed, stream));
  hipMemcpy3DBatchOp copy{};
  copy.src.type = hipMemcpyOperandTypePointer;
  copy.src.op.ptr.ptr = x;
  copy.src.op.ptr.rowLength = bytes;
  copy.src.op.ptr.layerHeight = 1;
  copy.dst = copy.src;
  copy.dst.op.ptr.ptr = y;
  copy.extent = make_hipExtent(bytes, 1, 1);
  copy.srcAccessOrder = hipMemcpySrcAccessOrderStream;
  ONCE(hipMemcpy3DBatchAsync(1, &copy, &failed, 0, stream));
  hipMemcpy3DPeerParms peer{};
  peer.srcPtr = make_hipPitchedPtr(x, bytes, bytes, 1);
  peer.dstPtr = make_hipPitchedPtr(y, bytes, bytes, 1);
  peer.extent = make_hipExtent(bytes, 1, 1);
  ONCE(hipMemcpy3DPeerAsync(&peer, stream));
  ONCE(hipMemcpy3DPeer(&peer));
  const auto at = reinterpret_cast<hipDeviceptr_t>(y);
  ONCE(hipMemsetD2D8Async(at, 64, 1, 64, 2, stream));
  ONCE(hipMemsetD2D16Async(at, 64, 1, 32, 2, stream));
  ONCE(hipMemsetD2D32Async(at, 64, 1, 16, 2, stream));
  ONCE(hipMemsetD2D8(at, 64, 1, 64, 2));
  ONCE(hipMemsetD2D16(at, 64, 1, 32, 2));
  ONCE(hipMemsetD2D32(at, 64, 1, 16, 2));
  void* managed = nullptr;
  NEVER(hipMallocManaged(&managed, 1 << 20));
  ONCE(hipMemPrefetchAsync_v2(managed, 1 << 20, hipMemLocation{hipMemLocationTypeDevice, 0}, 0, stream));
  unsigned long long id = 0;
  NEVER(hipStreamGetId(stream, &id));
  hipDriverEntryPointQueryResult entry_point;
  found = nullptr;
  NEVER(hipGetDriverEntryPoint("hipMemsetAsync", &found, 0, &entry_point));
  if (found != nullptr) ONCE(reinterpret_cast<Fill>(found)(y, 0, 64, stream));
#endif
  NEVER(hipDeviceSynchronize());
  return g_wrong == 0 ? 0 : 1;
}
