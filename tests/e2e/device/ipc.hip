// Memory and an event of one process that another uses: the parent exports, the child attaches, waits for the parent's
// work, writes and ends.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "device_test.h"
#include "tests/e2e/programs/event_memory.h"

namespace {

constexpr int kCount = 1'000;

constexpr double kParentMs = 200;

// From HIP 5.7 on nothing is ordered by another process's event: its hipEventRecord does not write to shared memory.
constexpr bool kEventsOrder = HIP_VERSION_MAJOR < 5 || (HIP_VERSION_MAJOR == 5 && HIP_VERSION_MINOR < 7);

template <typename Handle>
std::string to_hex(const Handle& handle) {
  std::string hex;
  for (size_t i = 0; i < sizeof handle; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", reinterpret_cast<const unsigned char*>(&handle)[i]);
    hex += digits;
  }
  return hex;
}

template <typename Handle>
Handle from_hex(const char* hex) {
  Handle handle;
  for (size_t i = 0; i < sizeof handle; ++i) {
    unsigned byte = 0;
    REQUIRE(std::sscanf(hex + 2 * i, "%2x", &byte) == 1);
    reinterpret_cast<unsigned char*>(&handle)[i] = static_cast<unsigned char>(byte);
  }
  return handle;
}

int child(const char* memory, const char* event) {
  void* values = nullptr;
  HIP(hipIpcOpenMemHandle(&values, from_hex<hipIpcMemHandle_t>(memory), hipIpcMemLazyEnablePeerAccess));
  hipEvent_t done;
  HIP(hipIpcOpenEventHandle(&done, from_hex<hipIpcEventHandle_t>(event)));
  hipStream_t stream;
  HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  HIP(hipStreamWaitEvent(stream, done, 0));
  launch_add(static_cast<int*>(values), kCount, 4, stream);
  HIP(hipStreamSynchronize(stream));
  REQUIRE(all_equal(read_back(static_cast<int*>(values), kCount), 5));
  HIP(hipEventDestroy(done));
  HIP(hipIpcCloseMemHandle(values));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) return child(argv[1], argv[2]);
  int* values = nullptr;
  HIP(hipMalloc(&values, kCount * sizeof(int)));
  HIP(hipMemset(values, 0, kCount * sizeof(int)));
  hipEvent_t done;
  HIP(hipEventCreateWithFlags(&done, hipEventDisableTiming | hipEventInterprocess));
  hipIpcMemHandle_t memory_handle;
  HIP(hipIpcGetMemHandle(&memory_handle, values));
  hipIpcEventHandle_t event_handle;
  HIP(hipIpcGetEventHandle(&event_handle, done));
  HIP(hipDeviceSynchronize());
  softgpu_spin_us<<<1, kBlock>>>(static_cast<uint64_t>(1'000 * kParentMs));
  launch_add(values, kCount, 1, nullptr);
  HIP(hipEventRecord(done, nullptr));
  if (!kEventsOrder) HIP(hipDeviceSynchronize());
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // also if a check fails in the parent
    execl("/proc/self/exe", argv[0], to_hex(memory_handle).c_str(), to_hex(event_handle).c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid && status == 0);
  HIP(hipDeviceSynchronize());
  HIP(hipEventDestroy(done));
  e2e::UnlinkEventMemory(event_handle);
  REQUIRE(all_equal(read_back(values, kCount), 5));
}
