// Memory of one process used by another one: the parent exports, the child attaches, writes and ends.
#include <sys/wait.h>

#include "device_test.h"

namespace {

constexpr int kCount = 1'000;

int child(const char* handle_in_hex) {
  hipIpcMemHandle_t handle;
  for (size_t i = 0; i < sizeof handle; ++i) {
    unsigned byte = 0;
    REQUIRE(std::sscanf(handle_in_hex + 2 * i, "%2x", &byte) == 1);
    reinterpret_cast<unsigned char*>(&handle)[i] = static_cast<unsigned char>(byte);
  }
  void* values = nullptr;
  HIP(hipIpcOpenMemHandle(&values, handle, hipIpcMemLazyEnablePeerAccess));
  REQUIRE(all_equal(read_back(static_cast<int*>(values), kCount), 1));
  launch_add(static_cast<int*>(values), kCount, 4, nullptr);
  HIP(hipDeviceSynchronize());
  HIP(hipIpcCloseMemHandle(values));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) return child(argv[1]);
  int* values = nullptr;
  HIP(hipMalloc(&values, kCount * sizeof(int)));
  HIP(hipMemset(values, 0, kCount * sizeof(int)));
  launch_add(values, kCount, 1, nullptr);
  HIP(hipDeviceSynchronize());
  hipIpcMemHandle_t handle;
  HIP(hipIpcGetMemHandle(&handle, values));
  std::string hex;
  for (size_t i = 0; i < sizeof handle; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", reinterpret_cast<unsigned char*>(&handle)[i]);
    hex += digits;
  }
  const pid_t pid = fork();
  if (pid == 0) {
    execl("/proc/self/exe", argv[0], hex.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid && status == 0);
  REQUIRE(all_equal(read_back(values, kCount), 5));
}
