// A client beside the program under test: keeps the device busy until its standard input ends. Prints "ready" when it
// has attached, and at the end how many kernels it launched. On the software GPU the kernel takes as many microseconds as
// its argument says.
#include <hip/hip_runtime.h>
#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

extern "C" __global__ void softgpu_spin_us(uint64_t us) {
  (void)us;
}

namespace {
constexpr uint64_t kMicroseconds = 400;
constexpr int kBurst = 8;  // launches between two waits: the device has work, but a closing gate is noticed soon

bool InputEnded() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  char byte = 0;
  return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}
}  // namespace

int main() {
  long launches = 0;
  if (hipFree(nullptr) != hipSuccess) return 1;
  do {
    for (int i = 0; i < kBurst; ++i) softgpu_spin_us<<<64, 256>>>(kMicroseconds);
    if (hipGetLastError() != hipSuccess || hipDeviceSynchronize() != hipSuccess) return 1;
    if (launches == 0) {
      std::puts("ready");
      std::fflush(stdout);
    }
    launches += kBurst;
  } while (!InputEnded());
  std::printf("%ld launches\n", launches);
  return 0;
}
