// Two threads that start the client at once, one of them in a constructor of a library that it loads, and so with the
// loader's lock: neither waits for the other for ever. usage: starting_program FAKE_HIP LIBRARY
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include "client-shim/include/xschedd.h"

namespace {

using Copy = int (*)(void*, const void*, size_t, int, void*);
Copy g_copy;
std::atomic<int> g_failures{0};
std::atomic<bool> g_is_loading{false};
std::atomic<int> g_other{0};  // the thread without the loader's lock

void Work() {
  if (g_copy(nullptr, nullptr, 0, 0, nullptr) != 0) ++g_failures;
}

char StateOf(int thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto end = line.rfind(") ");
  return end == std::string::npos ? '?' : line[end + 2];
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void work_of_the_constructor() {
  g_is_loading = true;
  // Waits until the other thread sleeps, waiting for the loader in the middle of the start.
  while (g_other == 0 || StateOf(g_other) != 'S')
    std::this_thread::yield();
  Work();
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  void* const hip = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  g_copy = hip != nullptr ? reinterpret_cast<Copy>(dlsym(hip, "hipMemcpyAsync")) : nullptr;
  if (g_copy == nullptr) return 2;
  std::thread loading([&] {
    if (dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) == nullptr) ++g_failures;
  });
  while (!g_is_loading)
    std::this_thread::yield();
  std::thread other([] {
    g_other = static_cast<int>(syscall(SYS_gettid));
    Work();
  });
  loading.join();
  other.join();
  xschedd_status status{};
  status.size = sizeof status;
  const auto get = reinterpret_cast<int (*)(xschedd_status*)>(dlsym(RTLD_DEFAULT, "xschedd_get_status"));
  if (get == nullptr || get(&status) != XSCHEDD_OK || status.submitted != 2) {
    std::fprintf(stderr, "%llu calls were counted, not 2\n", status.submitted);
    return 1;
  }
  return g_failures == 0 ? 0 : 1;
}
