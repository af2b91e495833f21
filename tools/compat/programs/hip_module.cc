// Launches a kernel of a code object (argument 1) through functions found in every way that programs and libraries use:
// linked, by dlsym from the global scope, from a handle and with a version, and by hipGetProcAddress if it exists.
#include <dlfcn.h>
#include <hip/hip_runtime.h>

#include "check.h"

namespace {

using LaunchFunction = hipError_t (*)(hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                      unsigned, hipStream_t, void**, void**);

bool Launch(const char* how, LaunchFunction launch, hipFunction_t function) {
  if (launch == nullptr) return compat::Check(how, -1);
  float* data = nullptr;
  int n = 0;
  void* arguments[] = {&data, &n};
  return compat::Check(how, launch(function, 64, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr));
}

LaunchFunction FromProcAddress() {
#if HIP_VERSION >= 60000000
  void* found = nullptr;
  hipDriverProcAddressQueryResult result{};
  CALL(hipGetProcAddress("hipModuleLaunchKernel", &found, HIP_VERSION / 100000, 0, &result));
  return reinterpret_cast<LaunchFunction>(found);
#else
  return hipModuleLaunchKernel;
#endif
}

LaunchFunction Find(void* handle, const char* version) {
  void* found =
      version == nullptr ? dlsym(handle, "hipModuleLaunchKernel") : dlvsym(handle, "hipModuleLaunchKernel", version);
  return reinterpret_cast<LaunchFunction>(found);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  CALL(hipSetDevice(0));  // attaches; a launch made before the daemon's answer is not counted
  NEED(hipModuleLoad(&module, argv[1]));
  NEED(hipModuleGetFunction(&function, module, "add_one"));
  Dl_info runtime{};
  dladdr(dlsym(RTLD_DEFAULT, "hipRuntimeGetVersion"), &runtime);
  void* handle = dlopen(runtime.dli_fname, RTLD_NOW | RTLD_LOCAL);
  for (int round = 0; round < compat::Rounds(); ++round) {
    Launch("linked", hipModuleLaunchKernel, function);
    Launch("dlsym, global scope", Find(RTLD_DEFAULT, nullptr), function);
    Launch("dlsym, handle", Find(handle, nullptr), function);
    Launch("dlvsym, handle", Find(handle, "hip_4.2"), function);
    Launch("hipGetProcAddress", FromProcAddress(), function);
    CALL(hipDeviceSynchronize());
  }
  CALL(hipModuleUnload(module));
  return compat::Finish();
}
