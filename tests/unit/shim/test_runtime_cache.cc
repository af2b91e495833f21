// The cache of callers' runtimes: what is stored is found, and threads that store in the same slot at once never leave
// the parts of two answers behind.
#include <atomic>
#include <thread>
#include <vector>

#include "client-shim/hip/runtime_cache.h"
#include "tests/catch.h"

using xschedd::shim::ElfObject;
using xschedd::shim::hip::RuntimeCache;

namespace {

const void* Caller(std::uintptr_t number) {
  return reinterpret_cast<const void*>(0x10000 + number * 1024);  // all in one slot
}

ElfObject Runtime(std::uintptr_t number) {
  ElfObject runtime;
  runtime.base = runtime.dynamic = number;
  return runtime;
}

}  // namespace

TEST_CASE("a caller's runtime is found until objects are loaded or another caller replaces it", "[runtime cache]") {
  RuntimeCache cache;
  ElfObject found;
  CHECK_FALSE(cache.Find(Caller(1), 7, &found));
  cache.Put(Caller(1), 7, Runtime(1));
  REQUIRE(cache.Find(Caller(1), 7, &found));
  CHECK(found.base == 1);
  CHECK(found.dynamic == 1);
  CHECK_FALSE(cache.Find(Caller(1), 8, &found));
  CHECK_FALSE(cache.Find(Caller(2), 7, &found));
  cache.Put(Caller(2), 7, Runtime(2));
  CHECK_FALSE(cache.Find(Caller(1), 7, &found));
  REQUIRE(cache.Find(Caller(2), 7, &found));
  CHECK(found.base == 2);
}

TEST_CASE("threads that use one slot at once find their own runtime or nothing", "[runtime cache]") {
  constexpr std::uintptr_t kThreads = 4;
  constexpr int kRounds = 3'000'000;
  static RuntimeCache cache;
  std::atomic<std::uintptr_t> ready{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uintptr_t number = 1; number <= kThreads; ++number) {
    threads.emplace_back([number, &ready, &wrong] {
      for (++ready; ready < kThreads;)
        std::this_thread::yield();
      for (int i = 0; i < kRounds; ++i) {
        cache.Put(Caller(number), 0, Runtime(number));
        ElfObject found;
        if (cache.Find(Caller(number), 0, &found) && (found.base != number || found.dynamic != number)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(wrong == 0);
}
