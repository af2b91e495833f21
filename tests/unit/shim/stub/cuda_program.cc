// A program under the preloaded stub, with a fake CUDA driver and a counting client library: each route gates a call
// exactly once, with exactly the requested version of the function. usage: cuda_program exports|inner|none FAKE_CUDA
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "client-shim/include/xschedd.h"
#include "tests/unit/shim/stub/expect.h"

extern "C" int cuGraphLaunch(void*, void*) __attribute__((weak));

namespace {

using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                       void**);
using Batch = int (*)(void**, void**, size_t*, size_t, void*, size_t*, size_t, size_t*, void*);
using BatchV2 = int (*)(void**, void**, size_t*, size_t, void*, size_t*, size_t, void*);
using Memset = int (*)(std::uint64_t, unsigned char, size_t, void*);
using Memcpy = int (*)(std::uint64_t, std::uint64_t, size_t);
using Synchronize = int (*)();
using SynchronizeV2 = int (*)(void*);
using GetAddress = int (*)(const char*, void**, int, std::uint64_t);
using GetAddressV2 = int (*)(const char*, void**, int, std::uint64_t, int*);

xschedd_status Status() {
  xschedd_status status{};
  status.size = sizeof status;
  const auto get = reinterpret_cast<int (*)(xschedd_status*)>(dlsym(RTLD_DEFAULT, "xschedd_get_status"));
  EXPECT(get != nullptr && get(&status) == XSCHEDD_OK);
  return status;
}
unsigned long long Submitted() {
  return Status().submitted;
}

bool IsShim(const void* address) {
  Dl_info info{};
  return address != nullptr && dladdr(address, &info) != 0 && strstr(info.dli_fname, "libxschedd-shim") != nullptr;
}

template <typename Function>
Function Look(void* handle, const char* name) {
  return reinterpret_cast<Function>(dlsym(handle, name));
}

struct Driver {
  explicit Driver(void* library)
      : calls(Look<int (*)()>(library, "fake_cuda_calls")),
        last(Look<long (*)()>(library, "fake_cuda_last")),
        which(Look<const char* (*)()>(library, "fake_cuda_which")) {}
  int (*calls)();
  long (*last)();
  const char* (*which)();
  bool Was(const char* name, long sum) const { return strcmp(which(), name) == 0 && last() == sum; }
};

// As cudart does: it looks up one function with dlsym, and gets all others from that.
void GetProcAddress(void* library, const Driver& driver) {
  const auto get_v1 = Look<GetAddress>(library, "cuGetProcAddress");
  const auto get = Look<GetAddressV2>(library, "cuGetProcAddress_v2");
  EXPECT(IsShim(reinterpret_cast<void*>(get_v1)) && IsShim(reinterpret_cast<void*>(get)));

  // It returns itself, in the requested version, and again the shim's.
  void* found = nullptr;
  int status = -1;
  EXPECT(get("cuGetProcAddress", &found, 12000, 0, &status) == 0 && IsShim(found) && status == 0);
  EXPECT(found == reinterpret_cast<void*>(get));
  EXPECT(reinterpret_cast<GetAddressV2>(found)("cuLaunchKernel", &found, 12000, 0, &status) == 0 && IsShim(found));
  EXPECT(get_v1("cuGetProcAddress", &found, 11030, 0) == 0 && found == reinterpret_cast<void*>(get_v1));

  // Each version and flag gives another function, with its own parameters, gated once.
  unsigned long long before = Submitted();
  EXPECT(get("cuLaunchKernel", &found, 12000, 1, nullptr) == 0);
  EXPECT(reinterpret_cast<Launch>(found)(nullptr, 1, 2, 3, 4, 5, 6, 7, reinterpret_cast<void*>(100), nullptr,
                                         nullptr) == 0);
  EXPECT(driver.Was("cuLaunchKernel", 128) && Submitted() == before + 1);
  EXPECT(get("cuLaunchKernel", &found, 12000, 2, nullptr) == 0);
  EXPECT(reinterpret_cast<Launch>(found)(nullptr, 1, 2, 3, 4, 5, 6, 7, nullptr, nullptr, nullptr) == 7);
  EXPECT(driver.Was("cuLaunchKernel_ptsz", 28) && Submitted() == before + 2);
  EXPECT(get("cuMemcpyBatchAsync", &found, 12080, 0, nullptr) == 0);
  EXPECT(reinterpret_cast<Batch>(found)(nullptr, nullptr, nullptr, 1, nullptr, nullptr, 2,
                                        reinterpret_cast<size_t*>(30), reinterpret_cast<void*>(400)) == 0);
  EXPECT(driver.Was("cuMemcpyBatchAsync", 433) && Submitted() == before + 3);
  EXPECT(get_v1("cuMemcpyBatchAsync", &found, 13000, 0) == 0);
  EXPECT(reinterpret_cast<BatchV2>(found)(nullptr, nullptr, nullptr, 1, nullptr, nullptr, 2,
                                          reinterpret_cast<void*>(400)) == 0);
  EXPECT(driver.Was("cuMemcpyBatchAsync_v2", 403) && Submitted() == before + 4);
  const auto syncs = Status().held_ns;
  EXPECT(get("cuCtxSynchronize", &found, 12000, 0, nullptr) == 0);
  EXPECT(reinterpret_cast<Synchronize>(found)() == 0 && driver.Was("cuCtxSynchronize", 0));
  EXPECT(get("cuCtxSynchronize", &found, 13000, 2, nullptr) == 0);  // no per-thread form
  EXPECT(reinterpret_cast<SynchronizeV2>(found)(reinterpret_cast<void*>(5)) == 0);
  EXPECT(driver.Was("cuCtxSynchronize_v2", 5) && Status().held_ns == syncs + 2);

  // Functions that are not entry points, newer ones than the list's, unknown ones, and wrong requests.
  EXPECT(get("cuInit", &found, 12000, 0, nullptr) == 0 && !IsShim(found) && found == dlsym(library, "cuInit"));
  EXPECT(get("cuLaunchKernel", &found, 14000, 0, nullptr) == 0 && !IsShim(found));
  EXPECT(get("cuLaunchKernel", &found, 2000, 0, &status) == 500 && found == nullptr && status == 1);
  EXPECT(get("cuNothing", &found, 12000, 0, nullptr) == 500);
}

// One item with its own key for each entry of the list; a list that the driver refuses is not read.
void MultiDevice(void* library, void* client, const Driver& driver) {
  struct Item {  // CUDA_LAUNCH_PARAMS
    void* function = reinterpret_cast<void*>(0x60);
    unsigned grid[3] = {1, 2, 3}, block[3] = {4, 5, 6}, shared = 0;
    void* stream = nullptr;
    void** arguments = nullptr;
  } list[2];
  const auto multi = Look<int (*)(const void*, unsigned, unsigned)>(library, "cuLaunchCooperativeKernelMultiDevice");
  const auto key = Look<std::uint64_t (*)()>(client, "fake_client_last_key");
  const unsigned long long before = Submitted();
  EXPECT(multi(list, 2, 5) == 0 && driver.Was("cuLaunchCooperativeKernelMultiDevice", 7));
  EXPECT(Submitted() == before + 2 && key() != 0);
  const std::uint64_t of_six = key();
  list[1].block[2] = 7;
  EXPECT(multi(list, 2, 0) == 0 && key() != of_six);
  // The list has two entries, whatever the count says.
  EXPECT(multi(list, 1u << 30, 0) == 1 && Submitted() == before + 4);
}

// A primary context that others still retain is not forgotten.
void PrimaryContext(void* library, void* client) {
  const auto resets = Look<int (*)()>(client, "fake_client_resets");
  const auto retain = Look<int (*)(void**, int)>(library, "cuDevicePrimaryCtxRetain");
  const auto release = Look<int (*)(int)>(library, "cuDevicePrimaryCtxRelease_v2");
  const auto unseen = Look<int (*)()>(library, "fake_cuda_retain_unseen");
  const int before = resets();
  void* context = nullptr;
  EXPECT(retain(&context, 3) == 0 && context != nullptr && retain(&context, 3) == 0);
  EXPECT(release(3) == 0 && resets() == before);
  EXPECT(release(5) == 201 && resets() == before);
  EXPECT(release(3) == 0 && resets() == before + 1);
  EXPECT(release(3) == 201 && resets() == before + 1);
  // A context that was retained by a call that was not intercepted.
  unseen();
  unseen();
  EXPECT(release(3) == 0 && resets() == before + 1);
  EXPECT(release(3) == 0 && resets() == before + 2);
}

// A marker is never made at the handle of an event that the program has destroyed.
void PastEvents(void* library, void* client) {
  const auto create = Look<int (*)(void**, unsigned)>(library, "cuEventCreate");
  const auto destroy = Look<int (*)(void*)>(library, "cuEventDestroy_v2");
  const auto mark = Look<void* (*)(int, void*)>(client, "fake_client_mark");
  const auto recorded = Look<void* (*)()>(library, "fake_cuda_recorded");
  EXPECT(IsShim(reinterpret_cast<void*>(destroy)));
  void* event = nullptr;
  EXPECT(create(&event, 0) == 0 && destroy(event) == 0);
  EXPECT(mark(3, nullptr) != nullptr && recorded() != nullptr && recorded() != event);
  void* again = nullptr;
  EXPECT(create(&again, 0) == 0 && again == event);  // reused, as it would be without the shim
}

// Several threads at once, from the first call on: each launch is counted once and passed on unchanged.
void Threads(Launch launch, const Driver& driver) {
  constexpr int kThreads = 8, kLaunches = 2000;
  const unsigned long long before = Submitted();
  const int calls = driver.calls();
  std::vector<std::thread> threads;
  for (long t = 0; t < kThreads; ++t) {
    threads.emplace_back([=, &driver] {
      for (int i = 0; i < kLaunches; ++i) {
        const int result = launch(nullptr, 1, 2, 3, 4, 5, 6, 7, reinterpret_cast<void*>(t * 1000), nullptr, nullptr);
        if (result != 0 || !driver.Was("cuLaunchKernel", 28 + t * 1000)) _exit(3);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT(Submitted() == before + kThreads * kLaunches && driver.calls() == calls + kThreads * kLaunches);
}

int Main(const std::string& mode, const char* path) {
  // Before a driver is loaded, lookups must not make programs believe that there is one.
  EXPECT(dlsym(RTLD_DEFAULT, "cuLaunchKernel") == nullptr && dlerror() != nullptr);
  EXPECT(Status().state == XSCHEDD_STATE_IDLE);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  EXPECT(library != nullptr);
  if (library == nullptr) return 1;
  const Driver driver(library);

  const auto launch = Look<Launch>(library, "cuLaunchKernel");
  EXPECT(IsShim(reinterpret_cast<void*>(launch)));
  EXPECT(!IsShim(dlsym(library, "cuInit")) && dlsym(library, "cuGraphLaunch") == nullptr);
  EXPECT(Status().state == XSCHEDD_STATE_IDLE);  // a lookup does not start the client
  errno = 77;
  EXPECT(launch(nullptr, 1, 2, 3, 4, 5, 6, 7, reinterpret_cast<void*>(100), nullptr, nullptr) == 0);
  EXPECT(errno == 77 && driver.Was("cuLaunchKernel", 128) && driver.calls() == 1);
  const bool counts = Status().state == XSCHEDD_STATE_SCHEDULED;
  EXPECT(counts == (mode != "none"));
  if (!counts) return g_failures;  // without a client library everything still works
  EXPECT(Submitted() == 1);
  Dl_info caller{};
  EXPECT(dladdr(reinterpret_cast<void*>(Status().client_id), &caller) != 0);
  EXPECT(strstr(caller.dli_fname, "cuda_program") != nullptr);

  // Other ways to a symbol: dlvsym finds nothing, because the driver has no versions; the global scope has the shim's,
  // to which a linked program is bound.
  EXPECT(dlvsym(library, "cuLaunchKernel", "NO_SUCH_VERSION") == nullptr);
  EXPECT(IsShim(dlsym(RTLD_DEFAULT, "cuLaunchKernel_ptsz")));
  const auto per_thread = Look<Launch>(RTLD_DEFAULT, "cuLaunchKernel_ptsz");
  EXPECT(per_thread(nullptr, 1, 1, 1, 1, 1, 1, 1, nullptr, nullptr, nullptr) == 7);  // an error is returned as it is
  EXPECT(Submitted() == 2 && Status().passthrough == 1);

  // A function that calls another through the PLT is gated once, as the outer one.
  EXPECT(Look<Memcpy>(library, "cuMemcpy")(10, 20, 30) == 0);
  EXPECT(driver.Was("cuMemsetD8Async", 60) && Submitted() == 3);
  EXPECT(Look<Memset>(library, "cuMemsetD8Async")(1, 2, 3, reinterpret_cast<void*>(4)) == 0);
  EXPECT(driver.Was("cuMemsetD8Async", 10) && Submitted() == 4);

  // An entry point that this driver lacks is an error like the driver's own, and is not found by its name.
  EXPECT(&cuGraphLaunch != nullptr && cuGraphLaunch(nullptr, nullptr) == 801);
  EXPECT(dlsym(RTLD_DEFAULT, "cuGraphLaunch") == nullptr && dlerror() != nullptr);

  GetProcAddress(library, driver);
  void* const client = dlopen(std::getenv("XSCHEDD_CLIENT_LIB"), RTLD_NOW | RTLD_NOLOAD);
  MultiDevice(library, client, driver);
  PrimaryContext(library, client);
  PastEvents(library, client);
  Threads(launch, driver);
  EXPECT(Look<int (*)()>(client, "fake_client_cancellable")() == 0);

  // A driver that the program has closed stays loaded while the client uses it.
  EXPECT(dlclose(library) == 0 && dlopen(path, RTLD_NOW | RTLD_NOLOAD) == library);

  // A forked child is left alone; the parent is not disturbed.
  const unsigned long long before = Submitted();
  const pid_t child = fork();
  if (child == 0) {
    const int result = launch(nullptr, 1, 1, 1, 1, 1, 1, 1, nullptr, nullptr, nullptr);
    _exit(result == 0 && Status().state == XSCHEDD_STATE_INERT ? 0 : 1);
  }
  int status = 1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  EXPECT(launch(nullptr, 1, 1, 1, 1, 1, 1, 1, nullptr, nullptr, nullptr) == 0);
  EXPECT(Submitted() == before + 1);
  return g_failures;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return Main(argv[1], argv[2]) == 0 ? 0 : 1;
}
