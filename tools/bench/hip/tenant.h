// Shared by the HIP programs of the bench: errors, ending on a signal, sleeping, and a file of JSON lines. Thread rule:
// one thread, apart from the signal, which may come at any time.
#pragma once

#include <hip/hip_runtime.h>
#include <signal.h>
#include <time.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "common/clock.h"

namespace tenant {

// Prints one line and exits: a tenant whose GPU calls fail measures nothing.
#define TENANT_HIP(call)                                                                \
  do {                                                                                  \
    const hipError_t tenant_error = (call);                                             \
    if (tenant_error != hipSuccess) {                                                   \
      std::fprintf(stderr, "%s: %s failed: %s\n", program_invocation_short_name, #call, \
                   hipGetErrorString(tenant_error));                                    \
      std::exit(1);                                                                     \
    }                                                                                   \
  } while (false)

inline volatile sig_atomic_t stop_requested = 0;

// On SIGTERM and SIGINT the program finishes what it has begun and writes its output. They interrupt sleep.
inline void StopOnSignal() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_requested = 1; };
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

inline bool IsStopping() {
  return stop_requested != 0;
}

inline void SleepUntil(std::uint64_t monotonic_ns) {
  timespec until{};
  until.tv_sec = static_cast<time_t>(monotonic_ns / 1'000'000'000);
  until.tv_nsec = static_cast<long>(monotonic_ns % 1'000'000'000);
  while (!IsStopping() && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

// Flushed line by line, so that a reader sees the tenant's progress.
class LineFile {
 public:
  explicit LineFile(const std::string& path) {
    if (path.empty()) return;
    file_ = std::fopen(path.c_str(), "w");
    if (file_ == nullptr) {
      std::fprintf(stderr, "%s: cannot write %s: %s; give another --out\n", program_invocation_short_name, path.c_str(),
                   std::strerror(errno));
      std::exit(1);
    }
    std::setvbuf(file_, nullptr, _IOLBF, 1 << 16);
  }
  ~LineFile() {
    if (file_ != nullptr) std::fclose(file_);
  }
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  template <typename... Arguments>
  void Write(const char* format, Arguments... arguments) {
    if (file_ != nullptr) std::fprintf(file_, format, arguments...);
  }

 private:
  FILE* file_ = nullptr;
};

// Selects blocking waits, so that waiting tenants leave the CPU to those that run. Must be a program's first HIP call.
inline void UseDevice() {
  TENANT_HIP(hipSetDeviceFlags(hipDeviceScheduleBlockingSync));
  TENANT_HIP(hipSetDevice(0));
}

// Compute units of the device.
inline unsigned ComputeUnits() {
  int units = 0;
  TENANT_HIP(hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, 0));
  return static_cast<unsigned>(units);
}

}  // namespace tenant
