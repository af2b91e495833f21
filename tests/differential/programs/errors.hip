// Calls that fail: their results and the last errors after them, while good launches between them are counted, held and
// timed.
//
// Each round makes every call of the table in a different order. Before some of them there is a good launch of the same
// kernel and shape, so that the bad one is of a known kind and due to be timed with a stop event.
//
// Some calls end the process on ROCm 5.2.3, without xschedd too (an assertion about a destroyed stream's device, a
// handle that is dereferenced unchecked). Each of these is made in a process of its own, whose end is compared.
#include <hip/hip_ext.h>
#include <sys/mman.h>

#include <utility>

#include "child.h"
#include "tests/differential/transcript.h"
#include "values.h"

using differential::Lane;
using differential::Run;
using differential::Values;
using e2e::Value;

// Smaller than the blocks it is launched with.
__global__ __launch_bounds__(64) void narrow(Value* y) {
  *y = 1;
}

namespace {

struct World {
  Values values, other;
  Value* y = nullptr;
  Value* x = nullptr;
  Value host[differential::kCount] = {};
  Value step = 1;
  std::uint32_t count = differential::kCount;
  std::uint64_t micros = 100;
  void* arguments[5] = {&y, &x, &step, &count, &micros};
  hipStream_t stream = nullptr, destroyed = nullptr, made = nullptr;
  hipEvent_t event = nullptr, made_event = nullptr;
  hipGraph_t graph = nullptr;
  void* pointer = nullptr;
  unsigned block = 64;  // of another kind in each round
  char zeroes[4096] = {};

  // Readable memory that is no object of the runtime's.
  template <typename Handle>
  Handle Garbage() {
    return reinterpret_cast<Handle>(zeroes);
  }

  // One entry, and no memory behind it: a count that is too large must be refused before the list is read.
  hipLaunchParams* LastOnPage() {
    static char* const pages = [] {
      void* both = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      (void)mprotect(static_cast<char*>(both) + 4096, 4096, PROT_NONE);
      return static_cast<char*>(both);
    }();
    return reinterpret_cast<hipLaunchParams*>(pages + 4096) - 1;
  }

  explicit World(Lane& lane) {
    values.Make(lane);
    other.Make(lane);
    y = values.device;
    x = other.device;
    CALL(lane, hipStreamCreate(&stream));
    CALL(lane, hipStreamCreate(&destroyed));
    CALL(lane, hipEventCreate(&event));
    CALL(lane, hipStreamDestroy(destroyed));
  }
};

const void* const kKernel = reinterpret_cast<const void*>(&scale_add);
const void* const kNoKernel = nullptr;
const void* const kHostFunction = reinterpret_cast<const void*>(&std::atexit);
const auto kBadKind = static_cast<hipMemcpyKind>(9);  // not constexpr: it is no value of ROCm 5.7's enumeration
constexpr std::size_t kTooMuch = std::size_t{1} << 50;

struct Case {
  const char* text;
  hipError_t (*call)(World& w);
  bool ends;  // the process
};
#define FAILS(...)                                                        \
  {                                                                       \
#__VA_ARGS__, [](World & w) { return (void)w, (__VA_ARGS__); }, false \
  }
#define ENDS(...)                                                        \
  {                                                                      \
#__VA_ARGS__, [](World & w) { return (void)w, (__VA_ARGS__); }, true \
  }

const Case kCases[] = {
    // ---- launches: the configuration, the function, the stream
    FAILS(hipLaunchKernel(kKernel, 1, 2048, w.arguments, 0, w.stream)),
    FAILS(hipLaunchKernel(kKernel, 1, w.block, w.arguments, 1 << 20, w.stream)),
    FAILS(hipLaunchKernel(kKernel, 1, w.block, w.arguments, 1 << 20, nullptr)),
    FAILS(hipLaunchKernel(kKernel, 0, 64, w.arguments, 0, w.stream)),
    FAILS(hipLaunchKernel(kKernel, 1, 0, w.arguments, 0, w.stream)),
    FAILS(hipLaunchKernel(kKernel, dim3(1u << 31), 64, w.arguments, 0, w.stream)),
    ENDS(hipLaunchKernel(kKernel, 1, 64, w.arguments, 0, w.destroyed)),
    ENDS(hipLaunchKernel(kKernel, 1, 64, w.arguments, 0, w.Garbage<hipStream_t>())),
    FAILS(hipLaunchKernel(kNoKernel, 1, 64, w.arguments, 0, w.stream)),
    FAILS(hipLaunchKernel(kHostFunction, 1, 64, w.arguments, 0, w.stream)),
    FAILS(hipLaunchKernel(reinterpret_cast<const void*>(&narrow), 1, 65, w.arguments, 0, w.stream)),
    FAILS(hipExtLaunchKernel(kKernel, 1, w.block, w.arguments, 1 << 20, w.stream, nullptr, nullptr, 0)),
    ENDS(hipExtLaunchKernel(kKernel, 1, 64, w.arguments, 0, w.destroyed, nullptr, nullptr, 0)),
    FAILS(hipExtLaunchKernel(kNoKernel, 1, 64, w.arguments, 0, w.stream, nullptr, nullptr, 0)),
    FAILS(hipLaunchCooperativeKernel(kKernel, 1 << 20, 64, w.arguments, 0, w.stream)),
    FAILS(hipLaunchCooperativeKernel(kKernel, 1, 64, w.arguments, 0, w.destroyed)),
    FAILS(hipLaunchCooperativeKernel(kNoKernel, 1, 64, w.arguments, 0, w.stream)),
    FAILS(hipLaunchCooperativeKernelMultiDevice(nullptr, 1, 0)),
    ENDS(hipLaunchCooperativeKernelMultiDevice(w.Garbage<hipLaunchParams*>(), -1, 0)),
    FAILS(hipLaunchCooperativeKernelMultiDevice(w.Garbage<hipLaunchParams*>(), 70, 0)),
    FAILS(hipLaunchCooperativeKernelMultiDevice(w.Garbage<hipLaunchParams*>(), 0, 0)),
    FAILS(hipLaunchCooperativeKernelMultiDevice(w.Garbage<hipLaunchParams*>(), 1, 0)),
    ENDS(hipExtLaunchMultiKernelMultiDevice(w.Garbage<hipLaunchParams*>(), -1, 0)),
    FAILS(hipExtLaunchMultiKernelMultiDevice(w.Garbage<hipLaunchParams*>(), 70, 0)),
    FAILS(hipLaunchCooperativeKernelMultiDevice(w.LastOnPage(), 5, 0)),
    FAILS(hipExtLaunchMultiKernelMultiDevice(w.LastOnPage(), 5, 0)),
    FAILS(hipModuleLaunchKernel(nullptr, 1, 1, 1, 64, 1, 1, 0, w.stream, w.arguments, nullptr)),
    ENDS(hipModuleLaunchKernel(w.Garbage<hipFunction_t>(), 1, 1, 1, 64, 1, 1, 0, w.stream, w.arguments, nullptr)),
    FAILS(hipExtModuleLaunchKernel(nullptr, 64, 1, 1, 64, 1, 1, 0, w.stream, w.arguments, nullptr)),
    FAILS(hipGraphLaunch(nullptr, w.stream)),
    FAILS(hipGraphLaunch(w.Garbage<hipGraphExec_t>(), w.stream)),

    // ---- copies and fills
    FAILS(hipMemcpy(w.host, w.y, sizeof w.host, kBadKind)),
    FAILS(hipMemcpy(nullptr, w.y, sizeof w.host, hipMemcpyDeviceToHost)),
    FAILS(hipMemcpy(w.host, nullptr, sizeof w.host, hipMemcpyDeviceToHost)),
    FAILS(hipMemcpy(w.host, w.y, 0, hipMemcpyDeviceToHost)),
    FAILS(hipMemcpy(w.host, w.y, 1 << 30, hipMemcpyDeviceToHost)),
    FAILS(hipMemcpyDtoH(nullptr, w.y, 16)),
    FAILS(hipMemcpyAsync(w.host, w.y, sizeof w.host, kBadKind, w.stream)),
    FAILS(hipMemcpyAsync(nullptr, w.y, sizeof w.host, hipMemcpyDeviceToHost, w.stream)),
    FAILS(hipMemcpyAsync(w.host, w.y, 0, hipMemcpyDeviceToHost, w.stream)),
    ENDS(hipMemcpyAsync(w.host, w.y, sizeof w.host, hipMemcpyDeviceToHost, w.Garbage<hipStream_t>())),
    FAILS(hipMemcpy2D(w.host, 1, w.y, 16, 16, 2, hipMemcpyDeviceToHost)),
    FAILS(hipMemcpy2DAsync(w.host, 1, w.y, 16, 16, 2, hipMemcpyDeviceToHost, w.stream)),
    FAILS(hipMemcpy3D(nullptr)),
    FAILS(hipMemcpy3DAsync(nullptr, w.stream)),
    FAILS(hipMemcpyPeer(w.y, 7, w.x, 0, 16)),
    FAILS(hipMemcpyPeerAsync(w.y, 7, w.x, 0, 16, w.stream)),
    FAILS(hipMemcpyToSymbol(w.host, w.host, 4)),
    FAILS(hipMemcpyFromSymbolAsync(w.host, w.host, 4, 0, hipMemcpyDeviceToHost, w.stream)),
    FAILS(hipMemset(nullptr, 0, 16)),
    FAILS(hipMemset(w.y, 0, 1 << 30)),
    FAILS(hipMemset(w.y, 0, 0)),
    FAILS(hipMemsetAsync(nullptr, 0, 16, w.stream)),
    FAILS(hipMemsetAsync(w.y, 1, 1 << 30, w.stream)),
    FAILS(hipMemset2DAsync(w.y, 1, 1, 16, 2, w.stream)),
    FAILS(hipMemPrefetchAsync(nullptr, 16, 0, w.stream)),

    // ---- events
    FAILS(hipEventRecord(nullptr, w.stream)),
    ENDS(hipEventRecord(w.event, w.Garbage<hipStream_t>())),
    FAILS(hipEventSynchronize(nullptr)),
    FAILS(hipEventQuery(nullptr)),
    FAILS(hipEventDestroy(nullptr)),
    FAILS(hipEventElapsedTime(nullptr, w.event, w.event)),
    FAILS(hipEventCreateWithFlags(&w.made_event, 99)),

    // ---- streams
    FAILS(hipStreamSynchronize(w.destroyed)),
    FAILS(hipStreamSynchronize(w.Garbage<hipStream_t>())),
    FAILS(hipStreamQuery(w.destroyed)),
    FAILS(hipStreamWaitEvent(w.stream, nullptr, 0)),
    FAILS(hipStreamWaitEvent(w.destroyed, w.event, 0)),
    FAILS(hipStreamWaitEvent(w.stream, w.event, 77)),
    FAILS(hipStreamDestroy(w.destroyed)),
    FAILS(hipStreamDestroy(nullptr)),
    FAILS(hipStreamDestroy(hipStreamPerThread)),
    FAILS(hipStreamDestroy(w.Garbage<hipStream_t>())),
    FAILS(hipStreamCreate(nullptr)),
    FAILS(hipStreamCreateWithFlags(&w.made, 99)),
    FAILS(hipStreamCreateWithPriority(nullptr, 0, 0)),
    FAILS(hipStreamAddCallback(w.stream, nullptr, nullptr, 0)),
    FAILS(hipStreamAddCallback(
        w.destroyed, [](hipStream_t, hipError_t, void*) {}, nullptr, 0)),
    FAILS(hipStreamWriteValue32(w.stream, nullptr, 0, 0)),
    FAILS(hipStreamBeginCapture(nullptr, hipStreamCaptureModeGlobal)),
    FAILS(hipStreamBeginCapture(w.destroyed, hipStreamCaptureModeGlobal)),
    FAILS(hipStreamBeginCapture(w.stream, static_cast<hipStreamCaptureMode>(7))),
    FAILS(hipStreamEndCapture(w.stream, &w.graph)),
    FAILS(hipStreamEndCapture(w.destroyed, &w.graph)),
    FAILS(hipStreamEndCapture(nullptr, &w.graph)),
    FAILS(hipSetDevice(99)),
    FAILS(hipSetDevice(-1)),

    // ---- memory
    FAILS(hipMalloc(&w.pointer, kTooMuch)),
    FAILS(hipHostMalloc(nullptr, 16, 0)),
    FAILS(hipMallocAsync(nullptr, 16, w.stream)),
    FAILS(hipMallocAsync(&w.pointer, kTooMuch, w.stream)),
    FAILS(hipMallocManaged(&w.pointer, kTooMuch)),
    FAILS(hipFreeAsync(nullptr, w.stream)),
    FAILS(hipFree(w.zeroes)),
    FAILS(hipHostFree(w.zeroes)),
    FAILS(hipFreeArray(nullptr)),
    FAILS(hipHostUnregister(w.zeroes)),
    FAILS(hipIpcCloseMemHandle(w.zeroes)),
};
constexpr unsigned kCaseCount = sizeof kCases / sizeof *kCases;

void Make(Lane& lane, World& w, const Case& one) {
  (void)lane.Returned(one.text, one.call(w));
}

}  // namespace

int main(int argc, char** argv) {
  Run run(argc, argv);
  if (argc > 4) {
    Lane lane = run.MakeLane(std::string("child ") + argv[4]);
    World w(lane);
    Make(lane, w, kCases[std::atoi(argv[4])]);
    return 0;
  }

  for (unsigned i = 0; i < kCaseCount; ++i) {
    if (!kCases[i].ends) continue;
    const std::string ended = differential::WaitForChild(differential::StartChild(run, std::to_string(i)));
    run.main.Note((std::string(kCases[i].text) + " in a process of its own: " + ended).c_str());
  }

  World w(run.main);
  unsigned order[kCaseCount];
  for (unsigned i = 0; i < kCaseCount; ++i)
    order[i] = i;
  for (unsigned round = 0; round < run.rounds; ++round) {
    w.block = 1 + 5 * round % 64;
    for (unsigned i = kCaseCount; i > 1; --i)
      std::swap(order[i - 1], order[run.main.Random(i)]);
    for (const unsigned i : order) {
      if (kCases[i].ends) continue;
      if (run.main.Random(3) == 0) {
        w.step = run.main.Random(1000);
        CALL(run.main, hipLaunchKernel(kKernel, 1, w.block, w.arguments, 0, w.stream));
        w.values.Step(w.other, w.step);
      }
      Make(run.main, w, kCases[i]);
    }
    CALL(run.main, hipDeviceSynchronize());
    w.values.Check(run.main, "values");
  }
  return run.End();
}
