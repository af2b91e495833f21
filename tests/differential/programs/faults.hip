// A kernel that faults. The queue's error callback notifies the runtime, and ROCm 5.2.3 ends the process from one of
// its threads. Each fault has a process of its own, whose end is compared: alone, behind work, as the first launch of
// its kind and as a timed one, on a stream that a thread waits for or not, and while the process is held.
#include <fcntl.h>

#include <iterator>
#include <string>

#include "child.h"
#include "tests/differential/transcript.h"
#include "values.h"

using differential::Lane;
using differential::Run;
using differential::Values;

// Runs for its argument and faults; with 0 it is never launched. See tools/softgpu.
extern "C" __global__ void softgpu_fault(std::uint64_t micros) {
  (void)micros;
}

namespace {

constexpr int kFromChild = 500, kToChild = 501;
const char* const kWays[] = {"waited for",
                             "waited for by an event",
                             "a blocking copy",
                             "waited for by nobody",
                             "behind work",
                             "on the default stream",
                             "held"};

int Child(const Run& run, const std::string& way) {
  Lane lane = run.MakeLane("child: " + way);
  Values values, other;
  values.Make(lane);
  other.Make(lane);
  hipStream_t stream = nullptr;
  hipEvent_t event = nullptr;
  if (way != "on the default stream") CALL(lane, hipStreamCreate(&stream));
  CALL(lane, hipEventCreate(&event));
  const unsigned before = way == "behind work" ? 12 : 1;
  for (unsigned step = 0; step < before; ++step)
    LAUNCH(lane, scale_add<<<2, 128, 0, stream>>>(values.device, other.device, step, differential::kCount, 300));
  if (way == "held") {
    // Held from here on: the launch waits at the gate.
    char byte = 'r';
    if (write(kFromChild, &byte, 1) != 1 || read(kToChild, &byte, 1) != 1) return 98;
  }
  // It faults some time after the calls behind it have begun, so their results are not checked.
  LAUNCH(lane, softgpu_fault<<<2, 128, 0, stream>>>(50'000));
  if (way == "waited for by an event") {
    (void)hipEventRecord(event, stream);
    (void)hipEventSynchronize(event);
  } else if (way == "a blocking copy") {
    (void)hipMemcpy(values.device, other.device, 64, hipMemcpyDeviceToDevice);
    (void)hipDeviceSynchronize();
  } else if (way == "waited for by nobody") {
    for (;;)
      pause();
  } else {
    (void)hipStreamSynchronize(stream);
  }
  return 99;
}

}  // namespace

int main(int argc, char** argv) {
  Run run(argc, argv);
  if (argc > 4) return Child(run, argv[4]);
  for (unsigned round = 0; round < run.rounds; ++round) {
    // Half of them, because each is a process to start.
    for (std::size_t i = (run.seed + round) % 2; i < std::size(kWays); i += 2) {
      const std::string way = kWays[i];
      int from[2], to[2];
      if (pipe2(from, O_CLOEXEC) != 0 || pipe2(to, O_CLOEXEC) != 0) return 97;
      const pid_t child = differential::StartChild(run, way, {{from[1], kFromChild}, {to[0], kToChild}});
      close(from[1]);
      close(to[0]);
      char byte = 0;
      if (way == "held" && read(from[0], &byte, 1) == 1) {
        const bool is_held = run.Ask("hold", child);
        if (write(to[1], &byte, 1) != 1) return 96;
        if (is_held) run.Ask("held", child);
        run.Ask("release", child);
      }
      run.main.Note((way + ": " + differential::WaitForChild(child)).c_str());
      close(to[1]);
      close(from[0]);
    }
  }
  return run.End();
}
