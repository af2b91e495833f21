// Processes on one device: they slow each other down and take turns; one that is killed during a kernel occupies the
// device no longer than that kernel; an idle one uses no CPU time; a forked child does no harm.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>

#include "device_test.h"

namespace {

constexpr uint64_t kFloodUs = 20'000;

// Keeps the device saturated until it is killed, always with some kernels queued; writes to `ready` when it has begun.
int flood(int ready) {
  constexpr int kInFlight = 4;
  hipStream_t stream;
  hipEvent_t done[kInFlight];
  HIP(hipStreamCreate(&stream));
  for (hipEvent_t& e : done)
    HIP(hipEventCreateWithFlags(&e, hipEventDisableTiming));
  for (int i = 0;; ++i) {
    hipEvent_t oldest = done[i % kInFlight];
    if (i >= kInFlight) HIP(hipEventSynchronize(oldest));
    softgpu_spin_us<<<kFullGrid, kBlock, 0, stream>>>(kFloodUs);
    HIP(hipEventRecord(oldest, stream));
    if (i == kInFlight) REQUIRE(write(ready, "r", 1) == 1);
  }
}

pid_t start_flood() {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // also if a check fails in the parent
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

// In device time, which a loaded host hardly affects.
double short_kernel_ms() {
  static hipEvent_t from = nullptr;
  static hipEvent_t to = nullptr;
  if (from == nullptr) {
    HIP(hipEventCreate(&from));
    HIP(hipEventCreate(&to));
  }
  HIP(hipEventRecord(from, nullptr));
  softgpu_spin_us<<<kFullGrid, kBlock>>>(500);
  HIP(hipEventRecord(to, nullptr));
  HIP(hipEventSynchronize(to));
  float ms = 0;
  HIP(hipEventElapsedTime(&ms, from, to));
  return ms;
}

double median_ms(int repetitions) {
  std::vector<double> all;
  for (int i = 0; i < repetitions; ++i)
    all.push_back(short_kernel_ms());
  std::nth_element(all.begin(), all.begin() + repetitions / 2, all.end());
  return all[repetitions / 2];
}

// If both saturate the device, they take turns: each kernel of 5 ms waits for one of 20 ms.
bool take_turns() {
  constexpr int kKernels = 15;
  hipEvent_t from;
  hipEvent_t to;
  HIP(hipEventCreate(&from));
  HIP(hipEventCreate(&to));
  HIP(hipEventRecord(from, nullptr));
  for (int i = 0; i < kKernels; ++i)
    softgpu_spin_us<<<kFullGrid, kBlock>>>(5'000);
  HIP(hipEventRecord(to, nullptr));
  HIP(hipEventSynchronize(to));
  float ms = 0;
  HIP(hipEventElapsedTime(&ms, from, to));
  std::printf("%d kernels of 5 ms in turn with kernels of 20 ms: %.0f ms\n", kKernels, ms);
  std::fflush(stdout);
  return ms > 0.6 * kKernels * 25 && ms < 1.6 * kKernels * 25;
}

void contention_and_death() {
  short_kernel_ms();
  const double alone = median_ms(20);
  const pid_t pid = start_flood();
  double beside = 0;
  REQUIRE(seen([&] {
    // Waits until the flood's packets are on the device: its host may have to wait for a core, also later.
    for (int i = 0; i < 60'000 && short_kernel_ms() < 5.0; ++i) {
    }
    beside = median_ms(10);
    // Beside kernels of 20 ms that are always queued, each short one waits for about one of them.
    std::printf("short kernel: alone %.2f ms, beside a saturating process %.2f ms\n", alone, beside);
    std::fflush(stdout);  // before the next fork copies it
    return beside > 5.0 && beside > 3.0 * alone;
  }));
  REQUIRE(seen(take_turns));
  kill_and_wait(pid);
  // The kernels that the dead process had booked still occupy the device, at most one for each of its queues.
  usleep(3 * kFloodUs);
  const double after = median_ms(20);
  REQUIRE(after < 0.5 * beside);
}

void stopped_process_does_not_hold_the_device() {
  const pid_t pid = start_flood();
  kill(pid, SIGSTOP);
  usleep(3 * kFloodUs);
  const double beside_stopped = median_ms(10);
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
    // It may fail, but may neither crash nor hang; and the runtime's exit handlers run.
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
