// passer CODE_OBJECT
// A client that submits as commanded on standard input, one or two words per line, each on its own thread, so that a
// held one does not block later commands:
//   own         a kernel of the program itself, own_kernel
//   template    the same for shaped<int, 4>
//   spin        a kernel of 30 ms, softgpu_spin_us
//   copy        hipMemcpyAsync
//   module      the kernel of the module that `get` chose
//   call        the function of the library that `open` loaded, which launches a kernel
//   graph       hipGraphLaunch of a graph that holds own_kernel, captured for it
// These submit nothing, and are done at once:
//   open PATH   loads a library; `close` unloads it; both print its place
//   get NAME    loads the code object anew and chooses a kernel in it; prints the handle
//   begin       begins a capture in the mode that restricts other threads; `end` ends it, and prints HIP's status
//   quit        waits for the device and ends
// Each prints "done WORD [RESULT]" when the call has returned.
#include <dlfcn.h>

#include <iostream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

#include "program.h"

extern "C" __global__ void own_kernel() {}
extern "C" __global__ void softgpu_spin_us(std::uint64_t micros) {
  (void)micros;
}
template <typename T, int kSize>
__global__ void shaped(T* at) {
  (void)at;
}
template __global__ void shaped<int, 4>(int*);

namespace {

std::mutex g_output;

void Say(const std::string& text) {
  const std::lock_guard lock(g_output);
  std::cout << text << std::endl;
}

template <typename Work>
void Submit(const std::string& word, Work work) {
  std::thread([word, work] {
    work();
    E2E_CHECK(hipGetLastError());
    Say("done " + word);
  }).detach();
}

}  // namespace

int main(int, char** argv) {
  void* buffer = nullptr;
  E2E_CHECK(hipMalloc(&buffer, e2e::kBytes));
  hipStream_t stream, captured;
  E2E_CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  E2E_CHECK(hipStreamCreateWithFlags(&captured, hipStreamNonBlocking));
  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  void* library = nullptr;
  hipGraph_t graph = nullptr;
  E2E_CHECK(hipStreamBeginCapture(captured, hipStreamCaptureModeRelaxed));
  own_kernel<<<1, 64, 0, captured>>>();
  E2E_CHECK(hipStreamEndCapture(captured, &graph));
  hipGraphExec_t executable;
  E2E_CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
  own_kernel<<<1, 64, 0, stream>>>();
  E2E_CHECK(hipDeviceSynchronize());
  Say("ready");

  static const e2e::Value host[4] = {};
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string verb, object;
    words >> verb >> object;
    if (verb == "own") {
      Submit(verb, [=] { own_kernel<<<1, 64, 0, stream>>>(); });
    } else if (verb == "template") {
      Submit(verb, [=] { shaped<int, 4><<<1, 64, 0, stream>>>(static_cast<int*>(buffer)); });
    } else if (verb == "spin") {
      Submit(verb, [=] { softgpu_spin_us<<<1, 64, 0, stream>>>(30'000); });
    } else if (verb == "copy") {
      Submit(verb, [=] { E2E_CHECK(hipMemcpyAsync(buffer, host, sizeof host, hipMemcpyHostToDevice, stream)); });
    } else if (verb == "module") {
      Submit(verb, [=] {
        E2E_CHECK(hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, stream, nullptr, nullptr));
      });
    } else if (verb == "call") {
      const auto launch = reinterpret_cast<int (*)(hipStream_t)>(dlsym(library, "passer_launch"));
      Submit(verb, [=] { E2E_CHECK(launch(stream)); });
    } else if (verb == "graph") {
      Submit(verb, [=] { E2E_CHECK(hipGraphLaunch(executable, stream)); });
    } else if (verb == "open" || verb == "close") {
      if (verb == "open" && (library = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL)) == nullptr) {
        std::cerr << dlerror() << std::endl;
        return 1;
      }
      std::ostringstream place;
      place << dlsym(library, "passer_launch");
      if (verb == "close") E2E_CHECK(dlclose(library));
      Say("done " + verb + " " + place.str());
    } else if (verb == "get") {
      if (module != nullptr) E2E_CHECK(hipModuleUnload(module));
      E2E_CHECK(hipModuleLoad(&module, argv[1]));
      E2E_CHECK(hipModuleGetFunction(&function, module, object.c_str()));
      std::ostringstream handle;
      handle << function;
      Say("done get " + handle.str());
    } else if (verb == "begin") {
      E2E_CHECK(hipStreamBeginCapture(captured, hipStreamCaptureModeGlobal));
      own_kernel<<<1, 64, 0, captured>>>();
      Say("done begin");
    } else if (verb == "end") {
      Say("done end " + std::to_string(hipStreamEndCapture(captured, &graph)));
    } else if (verb == "quit") {
      E2E_CHECK(hipDeviceSynchronize());
      std::_Exit(0);
    } else {
      std::cerr << "not understood: " << line << std::endl;
      return 2;
    }
  }
}
