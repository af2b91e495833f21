// Keeps several streams busy with kernels of a given length for a given time, each stream a few launches ahead, and
// prints the start and end of the measured part.
//
//   PROGRAM STREAMS MICROS GROUPS SECONDS [AHEAD [HOW [CODE_OBJECT]]]
//     HOW  launch      the compiler's launch syntax (default)
//          module      hipModuleLaunchKernel, the kernel from CODE_OBJECT
//          packed-module  the same with its arguments packed (`extra`)
//          ext-module  hipExtModuleLaunchKernel without events and with packed arguments, as rocBLAS calls it
//          hcc-module  hipHccModuleLaunchKernel in the same way
//          ext         hipExtLaunchKernel without events
//          graph       a graph of four such kernels, one behind the other
//
// AHEAD 0: there is no wait before the end; a kernel is launched every two lengths of one, so that the device is idle
// for half of the time. GROUPS workgroups a kernel: 2 use little of the device, thousands all of it. Prints "ready"
// once it has launched and waits for a line on standard input; "done" when the time is over, and ends with a second
// line.
#include <hip/hip_ext.h>
#include <time.h>

#include <iostream>
#include <string>

#include "program.h"

namespace {

constexpr unsigned kBlock = 256;

struct Packed {  // the kernel's arguments
  e2e::Value* y;
  const e2e::Value* x;
  e2e::Value step;
  std::uint32_t count;
  std::uint64_t micros;
};

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
  const std::string how = argc > 6 ? argv[6] : "launch";

  e2e::Value* buffer;
  E2E_CHECK(hipMalloc(reinterpret_cast<void**>(&buffer), e2e::kBytes));
  std::vector<hipStream_t> stream(streams);
  std::vector<std::vector<hipEvent_t>> events(streams, std::vector<hipEvent_t>(ahead));
  for (unsigned s = 0; s < streams; ++s) {
    E2E_CHECK(hipStreamCreateWithFlags(&stream[s], hipStreamNonBlocking));
    for (hipEvent_t& event : events[s])
      E2E_CHECK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
  }
  hipFunction_t function = nullptr;
  if (argc > 7) {
    hipModule_t module;
    E2E_CHECK(hipModuleLoad(&module, argv[7]));
    E2E_CHECK(hipModuleGetFunction(&function, module, "scale_add"));
  }
  // Their count of values is 0, so that kernels of several streams do not race.
  e2e::Value step = 1;
  std::uint32_t count = 0;
  std::vector<hipGraphExec_t> graphs(streams);
  for (unsigned s = 0; s < streams && how == "graph"; ++s) {
    hipGraph_t graph;
    E2E_CHECK(hipStreamBeginCapture(stream[s], hipStreamCaptureModeGlobal));
    for (int node = 0; node < 4; ++node)
      scale_add<<<groups, kBlock, 0, stream[s]>>>(buffer, buffer, step, count, micros);
    E2E_CHECK(hipStreamEndCapture(stream[s], &graph));
    E2E_CHECK(hipGraphInstantiate(&graphs[s], graph, nullptr, nullptr, 0));
  }
  const auto launch = [&](unsigned s, std::uint64_t us) {
    void* parameters[] = {&buffer, &buffer, &step, &count, &us};
    Packed packed{buffer, buffer, step, count, us};
    std::size_t size = sizeof packed;
    void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     HIP_LAUNCH_PARAM_END};
    if (how == "graph" && us == micros) {
      E2E_CHECK(hipGraphLaunch(graphs[s], stream[s]));
    } else if (how == "module") {
      E2E_CHECK(hipModuleLaunchKernel(function, groups, 1, 1, kBlock, 1, 1, 0, stream[s], parameters, nullptr));
    } else if (how == "packed-module") {
      E2E_CHECK(hipModuleLaunchKernel(function, groups, 1, 1, kBlock, 1, 1, 0, stream[s], nullptr, extra));
    } else if (how == "ext-module") {
      E2E_CHECK(hipExtModuleLaunchKernel(function, groups * kBlock, 1, 1, kBlock, 1, 1, 0, stream[s], nullptr, extra));
    } else if (how == "hcc-module") {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
      E2E_CHECK(hipHccModuleLaunchKernel(function, groups * kBlock, 1, 1, kBlock, 1, 1, 0, stream[s], nullptr, extra));
#pragma clang diagnostic pop
    } else if (how == "ext") {
      E2E_CHECK(hipExtLaunchKernel(reinterpret_cast<const void*>(&scale_add), dim3(groups), dim3(kBlock), parameters, 0,
                                   stream[s], nullptr, nullptr, 0));
    } else {
      scale_add<<<groups, kBlock, 0, stream[s]>>>(buffer, buffer, step, count, us);
      E2E_CHECK(hipGetLastError());
    }
  };
  launch(0, 1);
  E2E_CHECK(hipDeviceSynchronize());
  std::cout << "ready" << std::endl;
  std::string line;
  std::getline(std::cin, line);

  const double end = Seconds() + seconds;
  for (unsigned round = 0; Seconds() < end; ++round) {
    for (unsigned s = 0; s < streams; ++s) {
      if (ahead == 0) {
        launch(s, micros);
        timespec pause{0, static_cast<long>(2'000 * micros)};
        nanosleep(&pause, nullptr);
        continue;
      }
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
