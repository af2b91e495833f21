// A checked HIP program's work, for hosts that are odd in some other way: loads libamdhip64 itself (locally, as a
// Python extension does), launches tests/e2e's `scale_add` from a code object, and compares with the host's arithmetic.
//
// The code object is $HOST_CODE_OBJECT. The verdict goes to the file $HOST_RESULT, or to standard output without it,
// because some hosts have none. $HOST_STOP is a file of one byte, which the program sees however isolated it is: 0
// at first, another value once the daemon knows the program, kStop when it shall end. Nothing is submitted before the
// first Launch. Thread rule: one thread at a time.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "tests/e2e/programs/program.h"

namespace hosts {

class Work {
 public:
  Work() : x_(e2e::InitialX()), wanted_(e2e::kCount, 7) {
    if (const char* path = std::getenv("HOST_STOP")) {
      const int fd = open(path, O_RDONLY | O_CLOEXEC);
      void* const byte = mmap(nullptr, 1, PROT_READ, MAP_SHARED, fd, 0);
      close(fd);
      if (byte != MAP_FAILED) stop_ = static_cast<const volatile char*>(byte);
    }
    Load();
    void* module = nullptr;
    E2E_CHECK(Call<int (*)(void**, const char*)>("hipModuleLoad")(&module, std::getenv("HOST_CODE_OBJECT")));
    E2E_CHECK(Call<int (*)(void**, void*, const char*)>("hipModuleGetFunction")(&function_, module, "scale_add"));
    malloc_ = Call<int (*)(void**, std::size_t)>("hipMalloc");
    launch_ = Call<LaunchFunction>("hipModuleLaunchKernel");
    synchronize_ = Call<int (*)(void*)>("hipStreamSynchronize");
    copy_ = Call<int (*)(void*, const void*, std::size_t, int)>("hipMemcpy");
  }

  void Launch(unsigned count, std::uint64_t micros) {
    if (launches_ == 0) {  // the first allocation starts the shim's client, so not before
      E2E_CHECK(malloc_(&device_x_, e2e::kBytes));
      E2E_CHECK(malloc_(&device_y_, e2e::kBytes));
      E2E_CHECK(copy_(device_x_, x_.data(), e2e::kBytes, 1));  // 1: hipMemcpyHostToDevice
      E2E_CHECK(copy_(device_y_, wanted_.data(), e2e::kBytes, 1));
    }
    for (unsigned i = 0; i < count; ++i) {
      LaunchOne(micros);
      if (launches_ % 10 == 0) E2E_CHECK(synchronize_(nullptr));
    }
  }

  // Without $HOST_STOP, none.
  void LaunchUntilTold(std::uint64_t micros) {
    while (stop_ != nullptr && *stop_ != kStop)
      Launch(10, micros);
  }
  void LaunchUntilConnected(std::uint64_t micros) {
    while (stop_ != nullptr && *stop_ == 0)
      Launch(10, micros);
  }

  // Makes one launch, with little stack.
  void LaunchOne(std::uint64_t micros) {
    e2e::Value step = launches_;
    std::uint32_t values = e2e::kCount;
    void* parameters[] = {&device_y_, &device_x_, &step, &values, &micros};
    E2E_CHECK(launch_(function_, 2, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr));
    for (std::uint32_t i = 0; i < e2e::kCount; ++i)
      wanted_[i] = e2e::Step(wanted_[i], x_[i], step);
    ++launches_;
  }

  // Writes the verdict; the program's exit status.
  int Verdict() {
    std::vector<e2e::Value> got(e2e::kCount);
    E2E_CHECK(copy_(got.data(), device_y_, e2e::kBytes, 2));  // 2: hipMemcpyDeviceToHost
    const bool is_right = std::memcmp(got.data(), wanted_.data(), e2e::kBytes) == 0;
    char line[80];
    const int length = std::snprintf(line, sizeof line, "%s: %u launches, %u submissions\n",
                                     is_right ? "right" : "wrong", launches_, launches_ + 3);
    const char* path = std::getenv("HOST_RESULT");
    const int out = path != nullptr ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : STDOUT_FILENO;
    const bool is_written = write(out, line, static_cast<std::size_t>(length)) == length;
    if (path != nullptr) close(out);
    return is_right && is_written ? 0 : 1;
  }

 private:
  static constexpr char kStop = 1;

  using LaunchFunction = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                                 void**, void**);

  void Load() {
    for (const char* name : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}) {
      library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (library_ != nullptr) return;
    }
    std::fprintf(stderr, "no libamdhip64: %s\n", dlerror());
    std::_Exit(1);
  }
  template <typename Function>
  Function Call(const char* name) {
    void* address = dlsym(library_, name);
    if (address == nullptr) {
      std::fprintf(stderr, "%s not found\n", name);
      std::_Exit(1);
    }
    Function function;
    std::memcpy(&function, &address, sizeof address);
    return function;
  }

  const std::vector<e2e::Value> x_;
  std::vector<e2e::Value> wanted_;
  const volatile char* stop_ = nullptr;
  void* library_ = nullptr;
  void* function_ = nullptr;
  void* device_x_ = nullptr;
  void* device_y_ = nullptr;
  int (*malloc_)(void**, std::size_t) = nullptr;
  LaunchFunction launch_ = nullptr;
  int (*synchronize_)(void*) = nullptr;
  int (*copy_)(void*, const void*, std::size_t, int) = nullptr;
  unsigned launches_ = 0;
};

}  // namespace hosts
