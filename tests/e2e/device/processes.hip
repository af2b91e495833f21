// Processes on one device: they slow each other down and take turns; one that is killed in the middle of a kernel holds
// the device no longer than that kernel; an idle one uses no processor; a child of fork does no harm.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "device_test.h"

namespace {

constexpr uint64_t kFloodUs = 20'000;

// Keeps the device saturated until it is killed; says on `ready` when it has begun.
int flood(int ready) {
  hipStream_t stream;
  HIP(hipStreamCreate(&stream));
  for (int i = 0;; ++i) {
    softgpu_spin_us<<<kFullGrid, kBlock, 0, stream>>>(kFloodUs);
    softgpu_spin_us<<<kFullGrid, kBlock, 0, stream>>>(kFloodUs);
    if (i == 1) REQUIRE(write(ready, "r", 1) == 1);
    if (i > 2) HIP(hipStreamSynchronize(stream));
  }
}

pid_t start_flood() {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    execl("/proc/self/exe", "processes", std::to_string(ends[1]).c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  char byte = 0;
  REQUIRE(read(ends[0], &byte, 1) == 1);
  close(ends[0]);
  return pid;
}

void kill_and_wait(pid_t pid) {
  kill(pid, SIGKILL);
  REQUIRE(waitpid(pid, nullptr, 0) == pid);
}

double short_kernel_ms() {
  const double begin = milliseconds_now();
  softgpu_spin_us<<<kFullGrid, kBlock>>>(500);
  HIP(hipDeviceSynchronize());
  return milliseconds_now() - begin;
}

double mean_ms(int repetitions) {
  double sum = 0;
  for (int i = 0; i < repetitions; ++i)
    sum += short_kernel_ms();
  return sum / repetitions;
}

void contention_and_death() {
  short_kernel_ms();
  const double alone = mean_ms(20);
  const pid_t pid = start_flood();
  const double beside = mean_ms(10);
  // Beside kernels of 20 ms that are always there, each short one waits for about one of them.
  REQUIRE(beside > 5.0 && beside > 3.0 * alone);
  // A second flood: both take turns with the short ones.
  kill_and_wait(pid);
  // The kernels that the dead process had booked still hold the device, at most one each of its queues.
  usleep(3 * kFloodUs);
  const double after = mean_ms(20);
  REQUIRE(after < 0.5 * beside);
}

void stopped_process_does_not_hold_the_device() {
  const pid_t pid = start_flood();
  kill(pid, SIGSTOP);
  usleep(3 * kFloodUs);
  const double beside_stopped = mean_ms(10);
  kill(pid, SIGCONT);
  kill_and_wait(pid);
  REQUIRE(beside_stopped < 10.0);
}

void idle_costs_nothing() {
  HIP(hipDeviceSynchronize());
  rusage before;
  rusage after;
  getrusage(RUSAGE_SELF, &before);
  usleep(1'000'000);
  getrusage(RUSAGE_SELF, &after);
  const auto used = [](const rusage& r) {
    return 1e6 * static_cast<double>(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           static_cast<double>(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
  };
  REQUIRE(used(after) - used(before) < 5'000);  // of a second
  REQUIRE(after.ru_nvcsw - before.ru_nvcsw < 50);
}

void child_of_fork_is_inert() {
  const pid_t pid = fork();
  if (pid == 0) {
    void* memory = nullptr;
    // It may fail or not, but neither crash nor hang; and the exit handlers of the runtime run.
    (void)hipMalloc(&memory, 4096);
    std::exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  REQUIRE(short_kernel_ms() < 1'000);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) return flood(std::atoi(argv[1]));
  contention_and_death();
  stopped_process_does_not_hold_the_device();
  idle_costs_nothing();
  child_of_fork_is_inert();
}
