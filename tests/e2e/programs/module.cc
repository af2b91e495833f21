// A program that is not linked with HIP: it loads libamdhip64 itself, loads a code object, and launches by a function
// pointer, as Triton does.
//
//   module LAUNCHES MICROS HOW CODE_OBJECT
//     HOW  global-dlsym     dlopen(RTLD_GLOBAL), then dlsym(RTLD_DEFAULT)
//          local-dlsym      dlopen(RTLD_LOCAL), then dlsym(handle): RTLD_DEFAULT and RTLD_NEXT do not see HIP
//          deep-dlsym       the same with RTLD_DEEPBIND
//          local-dlvsym     as local-dlsym, but with dlvsym and the version node hip_4.2
//          get-proc-address the launch found by hipGetProcAddress (exit code 77, "skip", where the runtime has none)
#include <dlfcn.h>

#include <cstring>
#include <string>

#include "program.h"

namespace {

using Status = int;
using Handle = void*;

struct Hip {
  Status (*malloc)(void**, std::size_t);
  Status (*copy)(void*, const void*, std::size_t, int);
  Status (*load)(Handle*, const char*);
  Status (*function)(Handle*, Handle, const char*);
  Status (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**,
                   void**);
  Status (*synchronize)(Handle);
};

void* Open(const std::string& how) {
  const int scope = how == "global-dlsym" ? RTLD_GLOBAL : RTLD_LOCAL | (how == "deep-dlsym" ? RTLD_DEEPBIND : 0);
  for (const char* name : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}) {
    if (void* library = dlopen(name, RTLD_NOW | scope)) return library;
  }
  std::fprintf(stderr, "no libamdhip64: %s\n", dlerror());
  std::exit(1);
}

template <typename Function>
void Find(const std::string& how, void* library, const char* name, Function* function) {
  void* address = nullptr;
  if (how == "global-dlsym") address = dlsym(RTLD_DEFAULT, name);
  if (how == "local-dlsym" || how == "deep-dlsym" || how == "get-proc-address") address = dlsym(library, name);
  if (how == "local-dlvsym") address = dlvsym(library, name, "hip_4.2");
  if (address == nullptr) {
    std::fprintf(stderr, "%s not found by %s\n", name, how.c_str());
    std::exit(1);
  }
  std::memcpy(function, &address, sizeof address);
}

}  // namespace

int main(int argc, char** argv) {
  const e2e::Arguments arguments = e2e::ParseArguments(argc, argv);
  if (argc < 5) {
    std::fprintf(stderr, "usage: module LAUNCHES MICROS HOW CODE_OBJECT\n");
    return 2;
  }
  const std::string how = argv[3];
  void* library = Open(how);
  Hip hip{};
  Find(how, library, "hipMalloc", &hip.malloc);
  Find(how, library, "hipMemcpy", &hip.copy);
  Find(how, library, "hipModuleLoad", &hip.load);
  Find(how, library, "hipModuleGetFunction", &hip.function);
  Find(how, library, "hipStreamSynchronize", &hip.synchronize);
  Find(how, library, "hipModuleLaunchKernel", &hip.launch);
  if (how == "get-proc-address") {
    void* address = dlsym(library, "hipGetProcAddress");
    if (address == nullptr) {
      std::printf("skip: this libamdhip64 has no hipGetProcAddress\n");
      return 77;
    }
    Status (*get_proc_address)(const char*, void**, int, std::uint64_t, void*);
    std::memcpy(&get_proc_address, &address, sizeof address);
    E2E_CHECK(get_proc_address("hipModuleLaunchKernel", &address, 602, 0, nullptr));
    std::memcpy(&hip.launch, &address, sizeof address);
  }

  const std::vector<e2e::Value> x = e2e::InitialX();
  std::vector<e2e::Value> wanted(e2e::kCount, 7), got(e2e::kCount);
  void *device_x, *device_y;
  Handle module, function;
  E2E_CHECK(hip.load(&module, argv[4]));
  E2E_CHECK(hip.function(&function, module, "scale_add"));
  E2E_CHECK(hip.malloc(&device_x, e2e::kBytes));
  E2E_CHECK(hip.malloc(&device_y, e2e::kBytes));
  E2E_CHECK(hip.copy(device_x, x.data(), e2e::kBytes, 1));  // 1: hipMemcpyHostToDevice
  E2E_CHECK(hip.copy(device_y, wanted.data(), e2e::kBytes, 1));
  unsigned submissions = 2;
  for (unsigned launch = 0; launch < arguments.launches; ++launch) {
    e2e::Value step = launch;
    std::uint32_t count = e2e::kCount;
    std::uint64_t micros = arguments.micros;
    void* parameters[] = {&device_y, &device_x, &step, &count, &micros};
    E2E_CHECK(hip.launch(function, 2, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr));
    ++submissions;
    for (std::uint32_t i = 0; i < e2e::kCount; ++i)
      wanted[i] = e2e::Step(wanted[i], x[i], step);
    if (launch % 10 == 9) E2E_CHECK(hip.synchronize(nullptr));
  }
  E2E_CHECK(hip.copy(got.data(), device_y, e2e::kBytes, 2));  // 2: hipMemcpyDeviceToHost
  ++submissions;
  e2e::Finish(got, wanted, arguments.launches, submissions);
}
