// Modules and symbols: code objects loaded from a file and from memory, their kernels launched in every possible way,
// with arguments in each form and with the program's own events, symbols copied in both directions; and modules
// unloaded while kernels are in flight and loaded again, so that another kernel gets a known one's address.
//
// The code objects are files beside the program: module_a.co and module_b.co have kernels of the same names, and differ
// in what these may be launched with; module_other.co is for a device that is not there, which ends the process.
#include <hip/hip_ext.h>
#include <unistd.h>

#include <climits>
#include <fstream>
#include <iterator>
#include <string>

#include "child.h"
#include "tests/differential/transcript.h"
#include "values.h"

using differential::Lane;
using differential::Run;
using differential::Value;
using differential::Values;

__device__ Value g_symbol[16];
__constant__ Value g_constant[16];

namespace {

std::string Beside(const char* name) {
  char path[PATH_MAX] = "";
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  const std::string whole(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  return whole.substr(0, whole.rfind('/') + 1) + name;
}

struct Arguments {
  Value* y;
  const Value* x;
  Value step;
  std::uint32_t count;
  std::uint64_t micros;
};

struct World {
  Lane* lane;
  Values values, other;
  hipStream_t stream = nullptr;
  hipEvent_t start = nullptr, stop = nullptr;

  Arguments Next() {
    const Value step = lane->Random(1000);
    values.Step(other, step);
    return {values.device, other.device, step, differential::kCount, 100 + 100 * lane->Random(5)};
  }
};

// Every way to launch a module's kernel, one of them after the other.
void LaunchInEachWay(World& w, hipFunction_t function, unsigned block) {
  Lane& lane = *w.lane;
  const unsigned work = 2 * block;
  Arguments a = w.Next();
  void* list[] = {&a.y, &a.x, &a.step, &a.count, &a.micros};
  CALL(lane, hipModuleLaunchKernel(function, 2, 1, 1, block, 1, 1, 0, w.stream, list, nullptr));
  a = w.Next();
  std::size_t size = sizeof a;
  void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &a, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size, HIP_LAUNCH_PARAM_END};
  CALL(lane, hipModuleLaunchKernel(function, 2, 1, 1, block, 1, 1, 0, w.stream, nullptr, extra));
  a = w.Next();
  CALL(lane,
       hipExtModuleLaunchKernel(function, work, 1, 1, block, 1, 1, 0, w.stream, nullptr, extra, nullptr, nullptr, 0));
  a = w.Next();
  CALL(lane,
       hipExtModuleLaunchKernel(function, work, 1, 1, block, 1, 1, 0, w.stream, list, nullptr, w.start, w.stop, 0));
  CALL(lane, hipEventSynchronize(w.stop));
  float ms = -1;
  CALL(lane, hipEventElapsedTime(&ms, w.start, w.stop));
  lane.Sign("from the program's start event to its stop event", ms);
  a = w.Next();
  CALL(lane,
       hipExtModuleLaunchKernel(function, work, 1, 1, block, 1, 1, 0, w.stream, list, nullptr, nullptr, w.stop, 0));
  a = w.Next();
  CALL(lane, hipHccModuleLaunchKernel(function, work, 1, 1, block, 1, 1, 0, w.stream, list, nullptr, nullptr, nullptr));

  // Calls that fail, of a kind that has succeeded.
  CALL(lane, hipModuleLaunchKernel(function, 2, 1, 1, block, 1, 1, 1 << 20, w.stream, list, nullptr));
  CALL(lane, hipExtModuleLaunchKernel(function, work, 1, 1, block, 1, 1, 1 << 20, w.stream, list, nullptr, nullptr,
                                      nullptr, 0));
  CALL(lane, hipModuleLaunchKernel(function, 0, 1, 1, block, 1, 1, 0, w.stream, list, nullptr));
  CALL(lane, hipModuleLaunchKernel(function, 1u << 31, 1, 1, block, 1, 1, 0, w.stream, list, nullptr));
  CALL(lane, hipModuleLaunchKernel(function, 2, 1, 1, 2048, 1, 1, 0, w.stream, list, nullptr));
  CALL(lane, hipModuleLaunchKernel(function, 2, 1, 1, block, 1, 1, 0, w.stream, list, extra));
}

void Use(World& w, hipModule_t module, unsigned block) {
  Lane& lane = *w.lane;
  hipFunction_t function = nullptr, missing = nullptr;
  CALL(lane, hipModuleGetFunction(&function, module, "scale_add"));
  CALL(lane, hipModuleGetFunction(&missing, module, "no_such_kernel"));
  LaunchInEachWay(w, function, block);
  int attribute = 0;
  CALL(lane, hipFuncGetAttribute(&attribute, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
  lane.Number("max threads per block", attribute);

  hipDeviceptr_t variable = nullptr;
  std::size_t bytes = 0;
  Value numbers[4] = {};
  CALL(lane, hipModuleGetGlobal(&variable, &bytes, module, "module_numbers"));
  lane.Number("bytes of module_numbers", bytes);
  CALL(lane, hipMemcpyDtoH(numbers, variable, sizeof numbers));
  lane.Data("module_numbers", numbers, sizeof numbers);
  CALL(lane, hipModuleGetGlobal(&variable, &bytes, module, "no_such_variable"));
}

// Loaded, used, and unloaded, alternately with kernels in flight and without. Two objects alternate at one address.
void LoadAndUnload(World& w) {
  Lane& lane = *w.lane;
  for (unsigned turn = 0; turn < 4; ++turn) {
    const bool is_a = turn % 2 == 0;
    const std::string path = Beside(is_a ? "module_a.co" : "module_b.co");
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> image{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    hipModule_t module = nullptr;
    if (turn < 2) {
      CALL(lane, hipModuleLoad(&module, path.c_str()));
    } else {
      CALL(lane, hipModuleLoadData(&module, image.data()));
    }
    Use(w, module, is_a ? 128 : 64);
    // module_b's kernel may be launched with 64 threads at most: the first launch at the address that fails.
    hipFunction_t function = nullptr;
    CALL(lane, hipModuleGetFunction(&function, module, "scale_add"));
    Arguments a{w.values.device, w.other.device, 1, differential::kCount, 100};
    void* list[] = {&a.y, &a.x, &a.step, &a.count, &a.micros};
    if (!is_a) CALL(lane, hipModuleLaunchKernel(function, 2, 1, 1, 128, 1, 1, 0, w.stream, list, nullptr));
    if (lane.Random(2) == 0) CALL(lane, hipStreamSynchronize(w.stream));
    CALL(lane, hipModuleUnload(module));
    CALL(lane, hipModuleUnload(nullptr));
  }
  hipModule_t module = nullptr;
  CALL(lane, hipModuleLoad(&module, Beside("no_such_file.co").c_str()));
  CALL(lane, hipModuleLoad(nullptr, nullptr));
  CALL(lane, hipModuleLoadData(&module, nullptr));
}

void Symbols(World& w) {
  Lane& lane = *w.lane;
  Value in[16], out[16] = {};
  for (Value& value : in)
    value = lane.Random(1u << 30);
  CALL(lane, hipMemcpyToSymbol(HIP_SYMBOL(g_symbol), in, sizeof in));
  CALL(lane, hipMemcpyFromSymbol(out, HIP_SYMBOL(g_symbol), sizeof out));
  lane.Data("symbol", out, sizeof out);
  CALL(lane, hipMemcpyToSymbolAsync(HIP_SYMBOL(g_constant), in, 32, 8, hipMemcpyHostToDevice, w.stream));
  CALL(lane, hipMemcpyFromSymbolAsync(out, HIP_SYMBOL(g_constant), sizeof out, 0, hipMemcpyDeviceToHost, w.stream));
  CALL(lane, hipStreamSynchronize(w.stream));
  lane.Data("constant", out, sizeof out);
  CALL(lane, hipMemcpyToSymbolAsync(HIP_SYMBOL(g_symbol), in, sizeof in, 32, hipMemcpyHostToDevice, w.stream));
  CALL(lane, hipMemcpyFromSymbol(out, HIP_SYMBOL(g_symbol), sizeof out, 64));
  void* address = nullptr;
  std::size_t size = 0;
  CALL(lane, hipGetSymbolAddress(&address, HIP_SYMBOL(g_symbol)));
  lane.Null("address of the symbol", address);
  CALL(lane, hipGetSymbolSize(&size, HIP_SYMBOL(g_symbol)));
  lane.Number("size of the symbol", size);
  CALL(lane, hipMemsetAsync(address, 7, 32, w.stream));
  CALL(lane, hipMemcpyFromSymbolAsync(out, HIP_SYMBOL(g_symbol), sizeof out, 0, hipMemcpyDeviceToHost, w.stream));
  CALL(lane, hipStreamSynchronize(w.stream));
  lane.Data("symbol after a fill", out, sizeof out);
}

// The program's own kernels, by the entry points beside <<<>>>.
void OwnKernels(World& w) {
  Lane& lane = *w.lane;
  const void* const kernel = reinterpret_cast<const void*>(&scale_add);
  const auto launch = [&](hipEvent_t start, hipEvent_t stop, hipStream_t stream) {
    Arguments a = w.Next();
    void* list[] = {&a.y, &a.x, &a.step, &a.count, &a.micros};
    CALL(lane, hipExtLaunchKernel(kernel, 2, 128, list, 0, stream, start, stop, 0));
  };
  launch(nullptr, nullptr, w.stream);
  launch(w.start, w.stop, w.stream);
  launch(nullptr, w.stop, w.stream);
  CALL(lane, hipStreamWaitEvent(nullptr, w.stop, 0));
  launch(w.start, nullptr, nullptr);
  CALL(lane, hipStreamSynchronize(nullptr));
  float ms = -1;
  CALL(lane, hipEventElapsedTime(&ms, w.start, w.stop));
  Arguments a = w.Next();
  void* list[] = {&a.y, &a.x, &a.step, &a.count, &a.micros};
  CALL(lane, hipLaunchCooperativeKernel(kernel, dim3(2), dim3(128), list, 0, w.stream));
  // Kernels and copies of arrays, as far as the device has them: an error is to be the same error.
  hipArray_t array = nullptr;
  hipChannelFormatDesc format = hipCreateChannelDesc(32, 0, 0, 0, hipChannelFormatKindUnsigned);
  CALL(lane, hipMallocArray(&array, &format, 16, 4, hipArrayDefault));
  Value host[64] = {1, 2, 3};
  CALL(lane, hipMemcpy2DToArray(array, 0, 0, host, 64, 64, 4, hipMemcpyHostToDevice));
  CALL(lane, hipMemcpy2DFromArrayAsync(host, 64, array, 0, 0, 64, 4, hipMemcpyDeviceToHost, w.stream));
  CALL(lane, hipStreamSynchronize(w.stream));
  CALL(lane, hipFreeArray(array));
  hipTextureObject_t texture = nullptr;
  hipResourceDesc resource = {};
  resource.resType = hipResourceTypeLinear;
  resource.res.linear.devPtr = w.other.device;
  resource.res.linear.desc = format;
  resource.res.linear.sizeInBytes = differential::kBytes;
  hipTextureDesc description = {};
  CALL(lane, hipCreateTextureObject(&texture, &resource, &description, nullptr));
  lane.Null("texture", texture);
}

// On ROCm 5.2.3 the process ends here.
int LoadForOtherDevice(const Run& run) {
  Lane lane = run.MakeLane("other device");
  hipModule_t module = nullptr;
  CALL(lane, hipModuleLoad(&module, Beside("module_other.co").c_str()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Run run(argc, argv);
  if (argc > 4) return LoadForOtherDevice(run);
  const std::string ended = differential::WaitForChild(differential::StartChild(run, "other"));
  run.main.Note(("a module for another device, in a process of its own: " + ended).c_str());

  World w{&run.main, {}, {}};
  w.values.Make(run.main);
  w.other.Make(run.main);
  CALL(run.main, hipMemset(w.other.device, 3, differential::kBytes));
  CALL(run.main, hipDeviceSynchronize());
  w.other.Fill(3);
  CALL(run.main, hipStreamCreate(&w.stream));
  CALL(run.main, hipEventCreate(&w.start));
  CALL(run.main, hipEventCreate(&w.stop));
  for (unsigned round = 0; round < run.rounds; ++round) {
    LoadAndUnload(w);
    w.values.Check(run.main, "values after the modules");
    Symbols(w);
    OwnKernels(w);
    CALL(run.main, hipDeviceSynchronize());
    w.values.Check(run.main, "values");
  }
  return run.End();
}
