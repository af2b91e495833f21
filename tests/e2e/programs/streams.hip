// Keeps several streams busy with kernels of a given length for a given time, each stream a few launches ahead, and says
// when the measured part began and ended.
//
//   PROGRAM STREAMS MICROS GROUPS SECONDS [AHEAD]
//
// GROUPS workgroups a kernel: 2 takes little of the device, thousands take all of it. Prints "ready" once it has
// launched and waits for a line on standard input; ends with "done" and the CLOCK_MONOTONIC time before its first launch.
#include <time.h>

#include <iostream>
#include <string>

#include "program.h"

namespace {

double Seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const unsigned streams = static_cast<unsigned>(std::atoi(argv[1]));
  const auto micros = static_cast<std::uint64_t>(std::atoll(argv[2]));
  const unsigned groups = static_cast<unsigned>(std::atoi(argv[3]));
  const double seconds = std::atof(argv[4]);
  const unsigned ahead = argc > 5 ? static_cast<unsigned>(std::atoi(argv[5])) : 4;

  e2e::Value* buffer;
  E2E_CHECK(hipMalloc(reinterpret_cast<void**>(&buffer), e2e::kBytes));
  std::vector<hipStream_t> stream(streams);
  std::vector<std::vector<hipEvent_t>> events(streams, std::vector<hipEvent_t>(ahead));
  for (unsigned s = 0; s < streams; ++s) {
    E2E_CHECK(hipStreamCreateWithFlags(&stream[s], hipStreamNonBlocking));
    for (hipEvent_t& event : events[s]) E2E_CHECK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
  }
  const auto launch = [&](unsigned s, std::uint64_t us) {
    // None of the values: their count is 0, so that kernels of several streams do not race.
    scale_add<<<groups, 256, 0, stream[s]>>>(buffer, buffer, 1, 0, us);
    E2E_CHECK(hipGetLastError());
  };
  launch(0, 1);
  E2E_CHECK(hipDeviceSynchronize());
  std::cout << "ready" << std::endl;
  std::string line;
  std::getline(std::cin, line);

  const double end = Seconds() + seconds;
  for (unsigned round = 0; Seconds() < end; ++round) {
    for (unsigned s = 0; s < streams; ++s) {
      hipEvent_t event = events[s][round % ahead];
      if (round >= ahead) E2E_CHECK(hipEventSynchronize(event));
      launch(s, micros);
      E2E_CHECK(hipEventRecord(event, stream[s]));
    }
  }
  E2E_CHECK(hipDeviceSynchronize());
  std::cout << "done" << std::endl;
  std::getline(std::cin, line);
}
