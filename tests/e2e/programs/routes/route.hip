// Launches by one of the ways in which a program can reach the runtime's functions, and prints how often. Built as a
// library that others load (its entry point is route_work), and as a program, position-independent and not.
//
//   PROGRAM LAUNCHES MICROS HOW
//     HOW  launch          the compiler's launch syntax: hipLaunchKernel by the linker's table
//          address         the address of hipLaunchKernel, taken statically
//          default-dlsym, next-dlsym, default-dlvsym, next-dlvsym   hipLaunchKernel looked up from this code
//          ext-module, hcc-module   hipExtModuleLaunchKernel, hipHccModuleLaunchKernel by their C++ names
//          ggl             hip_impl::hipLaunchKernelGGLImpl (ROCm 5)
//          get-proc-address        hipModuleLaunchKernel by hipGetProcAddress (from ROCm 6)
//          get-driver-entry-point  the same by hipGetDriverEntryPoint (from ROCm 7)
//          to-symbol       hipMemcpyToSymbolAsync: the runtime copies by its own hipMemcpyAsync
//
// It sets up, prints "ready", waits for a line, submits LAUNCHES times and waits for the device, and prints "right: L
// launches, S submissions" since "ready"; then it waits for another line. E2E_CODE_OBJECT names the file
// that module launches take the kernel from. Thread rule: one thread.
#include <dlfcn.h>
#include <hip/hip_ext.h>

#include <cstring>
#include <functional>
#include <iostream>
#include <string>

#include "../program.h"

#if HIP_VERSION_MAJOR < 6
// Exported by early ROCm 5, but no longer in its headers. Null where it is absent, as in 5.7.
namespace hip_impl {
__attribute__((weak)) void hipLaunchKernelGGLImpl(std::uintptr_t function, const dim3& grid, const dim3& block, std::uint32_t shared,
                            hipStream_t stream, void** extra);
}
#endif

__device__ __attribute__((visibility("default"))) e2e::Value route_symbol[e2e::kCount];

namespace {

constexpr const char* kVersion = "hip_4.2";  // the node of hipLaunchKernel in every release
constexpr dim3 kGrid(2), kBlock(128);
const auto kLaunchAddress = &hipLaunchKernel;  // a relocation of this object's data

struct Packed {  // scale_add's arguments
  e2e::Value* y;
  const e2e::Value* x;
  e2e::Value step;
  std::uint32_t count;
  std::uint64_t micros;
};

using Launch = std::function<int(Packed)>;

hipFunction_t LoadFunction() {
  const char* path = std::getenv("E2E_CODE_OBJECT");
  hipModule_t module;
  hipFunction_t function;
  E2E_CHECK(hipModuleLoad(&module, path != nullptr ? path : ""));
  E2E_CHECK(hipModuleGetFunction(&function, module, "scale_add"));
  return function;
}

// Looks up hipLaunchKernel. A version that does not exist must not be found.
decltype(&hipLaunchKernel) LookUp(const std::string& how) {
  void* const where = how.rfind("next", 0) == 0 ? RTLD_NEXT : RTLD_DEFAULT;
  constexpr const char* kName = "hipLaunchKernel";
  const bool by_version = how.find("dlvsym") != std::string::npos;
  if (by_version && dlvsym(where, kName, "hip_4.2.wrong") != nullptr) {
    std::fprintf(stderr, "%s was found in a version that does not exist\n", kName);
    std::exit(1);
  }
  void* found = by_version ? dlvsym(where, kName, kVersion) : dlsym(where, kName);
  if (found == nullptr) {
    std::fprintf(stderr, "%s not found by %s: %s\n", kName, how.c_str(), dlerror());
    std::exit(1);
  }
  return reinterpret_cast<decltype(&hipLaunchKernel)>(found);
}

Launch ByFunction(decltype(&hipLaunchKernel) launch) {
  return [launch](Packed packed) {
    void* parameters[] = {&packed.y, &packed.x, &packed.step, &packed.count, &packed.micros};
    return static_cast<int>(launch(reinterpret_cast<const void*>(&scale_add), kGrid, kBlock, parameters, 0, nullptr));
  };
}

template <typename Call>
Launch ByBuffer(Call call) {
  return [call](Packed packed) {
    std::size_t size = sizeof packed;
    void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     HIP_LAUNCH_PARAM_END};
    return static_cast<int>(call(extra));
  };
}

#if HIP_VERSION_MAJOR >= 6
Launch ByModule(void* address) {
  const auto launch = reinterpret_cast<decltype(&hipModuleLaunchKernel)>(address);
  return ByBuffer([launch, function = LoadFunction()](void** extra) {
    return launch(function, kGrid.x, 1, 1, kBlock.x, 1, 1, 0, nullptr, nullptr, extra);
  });
}
#endif

Launch LaunchBy(const std::string& how) {
  if (how == "launch") {
    return [](Packed packed) {
      scale_add<<<kGrid, kBlock>>>(packed.y, packed.x, packed.step, packed.count, packed.micros);
      return static_cast<int>(hipGetLastError());
    };
  }
  if (how == "address") return ByFunction(kLaunchAddress);
  if (how == "ext-module") {
    return ByBuffer([function = LoadFunction()](void** extra) {
      return hipExtModuleLaunchKernel(function, kGrid.x * kBlock.x, 1, 1, kBlock.x, 1, 1, 0, nullptr, nullptr, extra);
    });
  }
  if (how == "hcc-module") {
    return ByBuffer([function = LoadFunction()](void** extra) {
      return hipHccModuleLaunchKernel(function, kGrid.x * kBlock.x, 1, 1, kBlock.x, 1, 1, 0, nullptr, nullptr, extra);
    });
  }
#if HIP_VERSION_MAJOR < 6
  if (how == "ggl" && hip_impl::hipLaunchKernelGGLImpl != nullptr) {
    return ByBuffer([](void** extra) {
      hip_impl::hipLaunchKernelGGLImpl(reinterpret_cast<std::uintptr_t>(&scale_add), kGrid, kBlock, 0, nullptr, extra);
      return hipGetLastError();
    });
  }
#else
  if (how == "get-proc-address") {
    void* found = nullptr;
    hipDriverProcAddressQueryResult status;
    constexpr int kVersion = HIP_VERSION_MAJOR * 100 + HIP_VERSION_MINOR;
    E2E_CHECK(hipGetProcAddress("hipModuleLaunchKernel", &found, kVersion, 0, &status));
    return ByModule(found);
  }
#endif
#if HIP_VERSION_MAJOR >= 7
  if (how == "get-driver-entry-point") {
    void* found = nullptr;
    hipDriverEntryPointQueryResult status;
    E2E_CHECK(hipGetDriverEntryPoint("hipModuleLaunchKernel", &found, 0, &status));
    return ByModule(found);
  }
#endif
  if (how == "to-symbol") {
    return [](Packed packed) {
      // Each copy writes another value: the buffer ends with the values of the last copies.
      static e2e::Value value;
      value = packed.step;
      const std::size_t at = packed.step % e2e::kCount * sizeof value;
      return static_cast<int>(
          hipMemcpyToSymbolAsync(HIP_SYMBOL(route_symbol), &value, sizeof value, at, hipMemcpyHostToDevice, nullptr) |
          hipStreamSynchronize(nullptr));
    };
  }
  return ByFunction(LookUp(how));
}

void WaitForLine() {
  std::string line;
  std::getline(std::cin, line);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int route_work(unsigned launches, std::uint64_t micros,
                                                                 const char* how) {
  const std::vector<e2e::Value> x = e2e::InitialX();
  std::vector<e2e::Value> wanted(e2e::kCount, 7), got(e2e::kCount);
  Packed packed{nullptr, nullptr, 0, e2e::kCount, micros};
  E2E_CHECK(hipMalloc(reinterpret_cast<void**>(&packed.y), e2e::kBytes));
  E2E_CHECK(hipMalloc(const_cast<e2e::Value**>(&packed.x), e2e::kBytes));
  E2E_CHECK(hipMemcpy(const_cast<e2e::Value*>(packed.x), x.data(), e2e::kBytes, hipMemcpyHostToDevice));
  E2E_CHECK(hipMemcpy(packed.y, wanted.data(), e2e::kBytes, hipMemcpyHostToDevice));
  const bool is_copy = std::string(how) == "to-symbol";
  const Launch launch = LaunchBy(how);
  std::cout << "ready" << std::endl;
  WaitForLine();

  if (is_copy) wanted.assign(e2e::kCount, 0);
  for (unsigned i = 0; i < launches; ++i) {
    packed.step = i;
    E2E_CHECK(launch(packed));
    if (is_copy) wanted[i % e2e::kCount] = i;
    for (std::uint32_t at = 0; at < e2e::kCount && !is_copy; ++at)
      wanted[at] = e2e::Step(wanted[at], x[at], i);
  }
  unsigned submissions = launches;
  if (is_copy) {
    E2E_CHECK(hipMemcpyFromSymbol(got.data(), HIP_SYMBOL(route_symbol), e2e::kBytes, 0, hipMemcpyDeviceToHost));
  } else {
    E2E_CHECK(hipMemcpy(got.data(), packed.y, e2e::kBytes, hipMemcpyDeviceToHost));
  }
  ++submissions;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (got[i] == wanted[i]) continue;
    std::fprintf(stderr, "wrong: value %zu is %u, should be %u\n", i, got[i], wanted[i]);
    return 1;
  }
  std::printf("right: %u launches, %u submissions\n", launches, submissions);
  std::fflush(stdout);
  WaitForLine();
  return 0;
}

#ifdef ROUTE_MAIN
int main(int argc, char** argv) {
  const e2e::Arguments arguments = e2e::ParseArguments(argc, argv);
  return route_work(arguments.launches, arguments.micros, argc > 3 ? argv[3] : "launch");
}
#endif
