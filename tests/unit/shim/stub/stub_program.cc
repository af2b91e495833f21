// A program under the preloaded stub, with a fake HIP and a counting client library: each route gates a call exactly
// once. usage: stub_program linked|dlopen|none|reenter FAKE_HIP
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "client-shim/include/xschedd.h"
#include "tests/unit/shim/stub/expect.h"

namespace {

struct Dim3 {
  unsigned x, y, z;
};
using Launch = int (*)(const void*, Dim3, Dim3, void**, size_t, void*);
using ModuleLaunch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                             void**);
using ExtLaunch = int (*)(const void*, Dim3, Dim3, void**, size_t, void*, void*, void*, int);
using ExtModuleLaunch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, size_t, void*,
                                void**, void**, void*, void*, unsigned);
using FromSymbol = int (*)(void*, const void*, size_t, size_t, int, void*);
using Synchronize = int (*)(void*);
using GetProcAddress = int (*)(const char*, void**, int, unsigned long, void*);

xschedd_status Status() {
  xschedd_status status{};
  status.size = sizeof status;
  const auto get = reinterpret_cast<int (*)(xschedd_status*)>(dlsym(RTLD_DEFAULT, "xschedd_get_status"));
  EXPECT(get != nullptr && get(&status) == XSCHEDD_OK);
  return status;
}

int SetPriority(int priority) {
  return reinterpret_cast<int (*)(int)>(dlsym(RTLD_DEFAULT, "xschedd_set_priority"))(priority);
}
int SetWeight(unsigned weight) {
  return reinterpret_cast<int (*)(unsigned)>(dlsym(RTLD_DEFAULT, "xschedd_set_weight"))(weight);
}
int SetDeadline(unsigned long long us) {
  return reinterpret_cast<int (*)(unsigned long long)>(dlsym(RTLD_DEFAULT, "xschedd_set_deadline"))(us);
}
int SetStreamDeadline(void* stream, unsigned long long us) {
  using Function = int (*)(void*, unsigned long long);
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, "xschedd_set_stream_deadline"))(stream, us);
}

std::string FileOf(void* address) {
  Dl_info info{};
  return address != nullptr && dladdr(address, &info) != 0 ? info.dli_fname : "";
}
bool IsShim(void* address) {
  return FileOf(address).find("libxschedd-shim") != std::string::npos;
}

template <typename Function>
Function Look(void* handle, const char* name) {
  return reinterpret_cast<Function>(dlsym(handle, name));
}

// A launch that the client times gets its stop event and is otherwise unchanged; one with the program's own event, or
// with flags, is left unchanged.
void CheckTimedLaunches(void* hip) {
  void* const own = reinterpret_cast<void*>(0x10);
  void* const ours = reinterpret_cast<void*>(0x20);
  int* calls = Look<int* (*)()>(hip, "fake_hip_counter")();
  const int* argument = Look<int* (*)()>(hip, "fake_hip_argument")();
  void** stop = Look<void** (*)()>(hip, "fake_hip_stop")();
  const auto launch = Look<Launch>(hip, "hipLaunchKernel");
  const auto module_launch = Look<ModuleLaunch>(hip, "hipModuleLaunchKernel");
  const auto ext = Look<ExtLaunch>(hip, "hipExtLaunchKernel");
  const auto ext_module = Look<ExtModuleLaunch>(hip, "hipExtModuleLaunchKernel");
  const int calls_before = *calls;
  const unsigned long long before = Status().submitted;
  int made = 0;
  // Whether that launch reached the runtime once, was counted once, and had `wanted` for its stop event.
  const auto is_right = [&](int result, int sum, void* wanted) {
    ++made;
    const bool is_so = result == 0 && *argument == sum && *stop == wanted && *calls == calls_before + made &&
                       Status().submitted == before + static_cast<unsigned>(made);
    *stop = nullptr;
    return is_so;
  };
  const Dim3 grid{1, 2, 3}, block{4, 5, 6};
  *stop = nullptr;
  EXPECT(is_right(ext(nullptr, grid, block, nullptr, 100, nullptr, nullptr, nullptr, 0), 121, nullptr));

  EXPECT(SetPriority(0x20) == XSCHEDD_OK);
  EXPECT(is_right(launch(nullptr, grid, block, nullptr, 100, nullptr), 121, ours));
  // This one counts in work items: 4, 10 and 18.
  EXPECT(is_right(module_launch(nullptr, 1, 2, 3, 4, 5, 6, 100, nullptr, nullptr, nullptr), 147, ours));
  EXPECT(is_right(ext(nullptr, grid, block, nullptr, 100, nullptr, nullptr, nullptr, 0), 121, ours));
  EXPECT(is_right(ext(nullptr, grid, block, nullptr, 100, nullptr, own, nullptr, 0), 121, nullptr));
  EXPECT(is_right(ext(nullptr, grid, block, nullptr, 100, nullptr, nullptr, own, 0), 121, own));
  EXPECT(is_right(ext(nullptr, grid, block, nullptr, 100, nullptr, nullptr, nullptr, 1), 122, nullptr));
  const auto by_module = [&](void* start, void* end, unsigned flags) {
    return ext_module(nullptr, 1, 2, 3, 4, 5, 6, 100, nullptr, nullptr, nullptr, start, end, flags);
  };
  EXPECT(is_right(by_module(nullptr, nullptr, 0), 121, ours));
  EXPECT(is_right(by_module(own, nullptr, 0), 121, nullptr));
  EXPECT(is_right(by_module(nullptr, own, 0), 121, own));
  EXPECT(is_right(by_module(nullptr, nullptr, 1), 122, nullptr));
  // More work items than the form with a stop event can count.
  EXPECT(module_launch(nullptr, 0x80000000u, 1, 1, 2, 1, 1, 0, nullptr, nullptr, nullptr) == 7);
  EXPECT(SetPriority(0) == XSCHEDD_OK);
}

// Entry points whose stream or device is not an argument; and arguments that the runtime refuses, which the shim must
// not dereference.
void CheckUnusualEntryPoints(void* hip) {
  void* client = dlopen(std::getenv("XSCHEDD_CLIENT_LIB"), RTLD_NOW | RTLD_NOLOAD);
  const auto last_stream = Look<void* (*)()>(client, "fake_client_last_stream");
  const auto devices = Look<unsigned (*)()>(client, "fake_client_devices");
  const int* calls = Look<int* (*)()>(hip, "fake_hip_counter")();
  void* const stream = reinterpret_cast<void*>(0x30);
  int made = *calls;
  unsigned long long submitted = Status().submitted;
  const auto is_right = [&](unsigned submissions) {
    submitted += submissions;
    return *calls == ++made && Status().submitted == submitted;
  };

  EXPECT(Look<int (*)(Dim3, Dim3, size_t, void*)>(hip, "hipConfigureCall")(Dim3{1, 1, 1}, Dim3{1, 1, 1}, 0, stream) ==
         0);
  EXPECT(Look<int (*)(const void*)>(hip, "hipLaunchByPtr")(nullptr) == 0);
  EXPECT(is_right(1) && last_stream() == stream);

  struct {  // hipLaunchConfig_t
    Dim3 grid{1, 1, 1}, block{1, 1, 1};
    size_t shared = 0;
    void* stream = reinterpret_cast<void*>(0x40);
  } config;
  const auto launch_ex = Look<int (*)(const void*, const void*, void**)>(hip, "hipLaunchKernelExC");
  EXPECT(launch_ex(&config, nullptr, nullptr) == 0);
  EXPECT(is_right(1) && last_stream() == config.stream);
  EXPECT(launch_ex(nullptr, nullptr, nullptr) == 9);
  EXPECT(is_right(1));

  struct Item {  // hipLaunchParams
    char before[48]{};
    void* stream = reinterpret_cast<void*>(0x50);
  } list[2];
  const auto multi = Look<int (*)(const void*, int, unsigned)>(hip, "hipLaunchCooperativeKernelMultiDevice");
  EXPECT(multi(list, 2, 0) == 0);
  EXPECT(is_right(2) && last_stream() == list[1].stream);
  EXPECT(multi(list, -1, 0) == 1);
  EXPECT(is_right(0));
  EXPECT(multi(nullptr, 2, 0) == 0);
  EXPECT(is_right(0));

  struct {  // hipGraphInstantiateParams
    void* node = nullptr;
    unsigned long long flags = 2;
    int result = 0;
    void* stream = reinterpret_cast<void*>(0x60);
  } with;
  const auto instantiate = Look<int (*)(void**, void*, void*)>(hip, "hipGraphInstantiateWithParams");
  EXPECT(instantiate(nullptr, nullptr, &with) == 0);
  EXPECT(is_right(1) && last_stream() == with.stream);
  with.flags = 1;  // no upload: nothing is submitted
  EXPECT(instantiate(nullptr, nullptr, &with) == 0);
  EXPECT(is_right(0));
  EXPECT(instantiate(nullptr, nullptr, nullptr) == 0);
  EXPECT(is_right(0));

  const unsigned long long syncs = Status().held_ns;
  float elapsed = 0;
  EXPECT(Look<int (*)(float*, void*, void*)>(hip, "hipEventElapsedTime")(&elapsed, nullptr, nullptr) == 0);
  EXPECT(is_right(0) && Status().held_ns == syncs + 1);

  // Blocking copies go to the default stream, of the thread where the name says so.
  const auto drains = Look<bool (*)()>(client, "fake_client_last_drains");
  using Copy = int (*)(void*, const void*, size_t, int);
  EXPECT(Look<Copy>(hip, "hipMemcpy")(nullptr, nullptr, 0, 2) == 0);
  EXPECT(is_right(1) && last_stream() == nullptr && drains());
  EXPECT(Look<Copy>(hip, "hipMemcpy_spt")(nullptr, nullptr, 0, 2) == 0);
  EXPECT(is_right(1) && last_stream() == reinterpret_cast<void*>(2) && drains());
  EXPECT(Look<Copy>(hip, "hipMemcpy_spt")(nullptr, nullptr, 0, 1) == 0);
  EXPECT(is_right(1) && !drains());

  // Events of a launch now stand for this launch, or for nothing.
  const auto recorded = Look<void* (*)()>(client, "fake_client_take_recorded");
  const auto forgotten = Look<void* (*)()>(client, "fake_client_take_forgotten");
  void* const event = reinterpret_cast<void*>(0x70);
  const auto ext = [&](void* start, void* stop, int flags) {
    recorded(), forgotten();
    const auto function = Look<ExtLaunch>(hip, "hipExtLaunchKernel");
    EXPECT(function(nullptr, Dim3{}, Dim3{}, nullptr, 0, stream, start, stop, flags) == 0);
    EXPECT(is_right(1));
  };
  ext(nullptr, nullptr, 0);
  EXPECT(recorded() == nullptr && forgotten() == nullptr);
  ext(event, nullptr, 0);
  EXPECT(recorded() == nullptr && forgotten() == event);
  ext(nullptr, event, 0);
  EXPECT(recorded() == event && forgotten() == event);
  ext(nullptr, event, 1);  // in any order
  EXPECT(recorded() == nullptr && forgotten() == event);
  recorded(), forgotten();
  EXPECT(Look<ExtModuleLaunch>(hip, "hipExtModuleLaunchKernel")(nullptr, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr,
                                                                nullptr, event, 0) == 0);
  EXPECT(is_right(1) && recorded() == event);

  EXPECT((devices() & 1u << 5) == 0);
  EXPECT(Look<int (*)(void*)>(hip, "hipCtxSetCurrent")(reinterpret_cast<void*>(5)) == 0);
  EXPECT((devices() & 1u << 5) != 0);
}

// A marker is never made at the handle of an event that the program has destroyed.
void CheckPastEvents(void* hip) {
  void* client = dlopen(std::getenv("XSCHEDD_CLIENT_LIB"), RTLD_NOW | RTLD_NOLOAD);
  const auto create = Look<int (*)(void**)>(hip, "hipEventCreate");
  const auto destroy = Look<int (*)(void*)>(hip, "hipEventDestroy");
  const auto mark = Look<void* (*)(int, void*)>(client, "fake_client_mark");
  void* event = nullptr;
  EXPECT(create(&event) == 0 && destroy(event) == 0);
  void* const marker = mark(5, nullptr);  // the current device
  EXPECT(marker != nullptr && marker != event);
  void* again = nullptr;
  EXPECT(create(&again) == 0 && again == event);  // reused, as it would be without the shim
}

// A failing call of the shim is not visible to the program, and does not clear the program's last error.
void CheckLastError(void* hip) {
  void* client = dlopen(std::getenv("XSCHEDD_CLIENT_LIB"), RTLD_NOW | RTLD_NOLOAD);
  const auto mark = Look<void* (*)(int, void*)>(client, "fake_client_mark");
  const auto last = Look<int (*)()>(hip, "hipGetLastError");
  const auto refuse = Look<void (*)(int)>(hip, "fake_hip_refuse_to_record");
  const bool errors_last = Look<int (*)()>(hip, "fake_hip_errors_last")() != 0;
  last();
  refuse(1);
  EXPECT(mark(5, nullptr) == nullptr && last() == 0);
  const auto launch = Look<ModuleLaunch>(hip, "hipModuleLaunchKernel");
  EXPECT(launch(nullptr, 1, 2, 3, 4, 5, 6, 100, nullptr, nullptr, nullptr) == 7);
  EXPECT(mark(5, nullptr) == nullptr);
  if (errors_last) EXPECT(last() != 0);  // otherwise the program's next call sets it
  refuse(0);
  EXPECT(launch(nullptr, 1, 2, 3, 4, 5, 6, 100, nullptr, nullptr, nullptr) == 7);
  EXPECT(mark(5, nullptr) != nullptr);
  if (errors_last) EXPECT(last() == 7);
  last();
}

// No call into the client library can be cancelled, and afterwards the program's threads can be cancelled as before.
void CheckCancellation() {
  void* client = dlopen(std::getenv("XSCHEDD_CLIENT_LIB"), RTLD_NOW | RTLD_NOLOAD);
  EXPECT(Look<int (*)()>(client, "fake_client_cancellable")() == 0);
  int state = PTHREAD_CANCEL_DISABLE;
  EXPECT(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state) == 0 && state == PTHREAD_CANCEL_ENABLE);
}

int Main(const std::string& mode, const char* path) {
  // Before HIP is loaded, lookups must not make programs believe that there is one.
  if (mode == "dlopen") {
    EXPECT(dlsym(RTLD_DEFAULT, "hipLaunchKernel") == nullptr);
    EXPECT(dlerror() != nullptr);
    EXPECT(Status().state == XSCHEDD_STATE_IDLE);
  }
  void* hip = dlopen(path, RTLD_NOW | (mode == "linked" ? RTLD_GLOBAL : RTLD_LOCAL));
  EXPECT(hip != nullptr);
  if (hip == nullptr) return 1;
  if (mode == "reenter") {
    // The very first call of the process is one that reaches another export from within the runtime.
    EXPECT(Look<FromSymbol>(hip, "hipMemcpyFromSymbolAsync")(nullptr, nullptr, 0, 0, 0, nullptr) == 0);
    EXPECT(Status().submitted == 1 && *Look<int* (*)()>(hip, "fake_hip_counter")() == 1);
    return g_failures;
  }
  const bool has_table = Look<int (*)()>(hip, "fake_hip_has_table")() != 0;
  int* calls = Look<int* (*)()>(hip, "fake_hip_counter")();
  const int* argument = Look<int* (*)()>(hip, "fake_hip_argument")();

  // Symbols that are not entry points are returned unchanged.
  EXPECT(FileOf(dlsym(hip, "hip_not_an_entry_point")) == path);
  EXPECT(FileOf(dlsym(hip, "hipPeekAtLastError")) == path);
  EXPECT(dlsym(hip, "hipGraphLaunch") == nullptr);
  // The shim defines it but the runtime does not have it: a lookup must not find it.
  EXPECT(dlsym(RTLD_DEFAULT, "hipGraphLaunch") == nullptr && dlerror() != nullptr);
  void* self = dlopen(nullptr, RTLD_NOW);
  EXPECT(dlsym(self, "hipGraphLaunch") == nullptr && dlerror() != nullptr);
  EXPECT(IsShim(dlsym(self, "hipLaunchKernel")) == (mode == "linked"));
  EXPECT(FileOf(dlsym(RTLD_NEXT, "malloc")).find("libc") != std::string::npos);
  EXPECT(dlsym(RTLD_DEFAULT, "xschedd_no_such_symbol") == nullptr);
  EXPECT(dlvsym(RTLD_DEFAULT, "printf", "GLIBC_2.2.5") != nullptr);

  // Hints before the first GPU work are checked, and remembered for it.
  EXPECT(SetWeight(10'001) == XSCHEDD_ERROR_INVALID);
  EXPECT(SetWeight(3) == XSCHEDD_ERROR_NOT_CONNECTED && SetWeight(5) == XSCHEDD_ERROR_NOT_CONNECTED);
  EXPECT(SetDeadline(3'600'000'001) == XSCHEDD_ERROR_INVALID);
  EXPECT(SetDeadline(1000) == XSCHEDD_ERROR_NOT_CONNECTED);
  EXPECT(SetStreamDeadline(nullptr, 100) == XSCHEDD_ERROR_NOT_CONNECTED);

  const auto launch = Look<Launch>(hip, "hipLaunchKernel");
  EXPECT(IsShim(reinterpret_cast<void*>(launch)));
  errno = 77;
  EXPECT(launch(nullptr, Dim3{1, 2, 3}, Dim3{4, 5, 6}, nullptr, 100, nullptr) == 0);
  EXPECT(errno == 77);
  EXPECT(*argument == 121);
  EXPECT(*calls == 1);
  const bool counts = Status().state == XSCHEDD_STATE_SCHEDULED;
  EXPECT(counts == (mode != "none"));
  EXPECT(SetWeight(20'000) == XSCHEDD_ERROR_INVALID);
  EXPECT(SetWeight(10'000) == (counts ? XSCHEDD_OK : XSCHEDD_ERROR_INERT));
  EXPECT(SetDeadline(0) == (counts ? XSCHEDD_OK : XSCHEDD_ERROR_INERT));
  EXPECT(SetStreamDeadline(nullptr, 200'000) == (counts ? XSCHEDD_OK : XSCHEDD_ERROR_INERT));
  if (!counts) return g_failures;  // without a client library everything still works
  EXPECT(Status().effective_priority == 5 + 1000 + 10'000 + 200'000);  // the sum of all received hints
  EXPECT(Status().submitted == 1);
  // The caller is this program, also through the dispatch table.
  EXPECT(FileOf(reinterpret_cast<void*>(Status().client_id)).find("stub_program") != std::string::npos);

  // Arguments on the stack arrive, and an error is returned as it is.
  const auto module_launch = Look<ModuleLaunch>(hip, "hipModuleLaunchKernel");
  EXPECT(module_launch(nullptr, 1, 2, 3, 4, 5, 6, 100, nullptr, nullptr, nullptr) == 7);
  EXPECT(*argument == 121);
  EXPECT(*calls == 2);
  EXPECT(Status().submitted == 2);
  EXPECT(Status().passthrough == 1);  // failed

  // The table ends at its size.
  EXPECT(Look<int (*)()>(hip, "fake_hip_touched")() == 0);

  CheckTimedLaunches(hip);
  CheckUnusualEntryPoints(hip);
  const int calls_before = *calls;
  const unsigned long long submitted_before = Status().submitted;

  // A function that calls another through the PLT is gated once, as the outer one.
  EXPECT(Look<FromSymbol>(hip, "hipMemcpyFromSymbolAsync")(nullptr, nullptr, 0, 0, 0, nullptr) == 0);
  EXPECT(*calls == calls_before + 1);
  EXPECT(Status().submitted == submitted_before + 1);

  EXPECT(Look<Synchronize>(hip, "hipStreamSynchronize")(nullptr) == 0);
  EXPECT(Status().held_ns == 2);  // synchronisations, one of them hipEventElapsedTime's

  // Addresses by hipGetProcAddress: the export, and an inner function.
  void* found = nullptr;
  const auto get = Look<GetProcAddress>(hip, "hipGetProcAddress");
  EXPECT(get("hipLaunchKernel", &found, 60200, 0, nullptr) == 0);
  EXPECT(reinterpret_cast<Launch>(found)(nullptr, Dim3{}, Dim3{}, nullptr, 0, nullptr) == 0);
  EXPECT(Status().submitted == submitted_before + 2);
  if (!has_table) {
    EXPECT(get("hipModuleLaunchKernel", &found, 60200, 0, nullptr) == 0);
    EXPECT(reinterpret_cast<ModuleLaunch>(found)(nullptr, 0, 0, 0, 0, 0, 0, 0, nullptr, nullptr, nullptr) == 7);
    EXPECT(Status().submitted == submitted_before + 3);
  }
  EXPECT(get("hipNothing", &found, 60200, 0, nullptr) == 1);

  CheckPastEvents(hip);
  CheckLastError(hip);
  CheckCancellation();
  // The first symbol in the global scope, to which a linked program is bound.
  const auto global = Look<Launch>(RTLD_DEFAULT, "hipLaunchKernel");
  EXPECT(IsShim(reinterpret_cast<void*>(global)));
  const unsigned long long before = Status().submitted;
  EXPECT(global(nullptr, Dim3{}, Dim3{}, nullptr, 0, nullptr) == 0);
  EXPECT(Status().submitted == before + 1);
  // A forked child is left alone; the parent is not disturbed.
  const pid_t child = fork();
  if (child == 0) {
    const int result = global(nullptr, Dim3{}, Dim3{}, nullptr, 0, nullptr);
    _exit(result == 0 && Status().state == XSCHEDD_STATE_INERT ? 0 : 1);
  }
  int status = 1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  EXPECT(global(nullptr, Dim3{}, Dim3{}, nullptr, 0, nullptr) == 0);
  EXPECT(Status().submitted == before + 2);
  return g_failures;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return Main(argv[1], argv[2]) == 0 ? 0 : 1;
}
