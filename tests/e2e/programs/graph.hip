// A graph of five launches and a copy, captured in global mode (the mode that forbids most) and launched many times.
// The shim must not record, query or wait while the capture is active, or the capture fails.
#include "program.h"

int main(int argc, char** argv) {
  constexpr unsigned kNodes = 5;
  const e2e::Arguments arguments = e2e::ParseArguments(argc, argv);
  const unsigned graphs = arguments.launches / kNodes;
  const std::vector<e2e::Value> x = e2e::InitialX();
  std::vector<e2e::Value> wanted(e2e::kCount, 7);
  e2e::Value *device_x, *device_y, *pinned;
  hipStream_t stream;
  unsigned submissions = 0;

  E2E_CHECK(hipStreamCreate(&stream));
  E2E_CHECK(hipMalloc(reinterpret_cast<void**>(&device_x), e2e::kBytes));
  E2E_CHECK(hipMalloc(reinterpret_cast<void**>(&device_y), e2e::kBytes));
  E2E_CHECK(hipHostMalloc(reinterpret_cast<void**>(&pinned), e2e::kBytes, 0));
  E2E_CHECK(hipMemcpy(device_x, x.data(), e2e::kBytes, hipMemcpyHostToDevice));
  E2E_CHECK(hipMemcpy(device_y, wanted.data(), e2e::kBytes, hipMemcpyHostToDevice));
  submissions += 2;

  hipGraph_t graph;
  hipGraphExec_t exec;
  E2E_CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  for (unsigned node = 0; node < kNodes; ++node) {
    scale_add<<<2, 128, 0, stream>>>(device_y, device_x, node, e2e::kCount, arguments.micros);
  }
  E2E_CHECK(hipMemcpyAsync(pinned, device_y, e2e::kBytes, hipMemcpyDeviceToHost, stream));
  E2E_CHECK(hipStreamEndCapture(stream, &graph));
  E2E_CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));

  for (unsigned launch = 0; launch < graphs; ++launch) {
    E2E_CHECK(hipGraphLaunch(exec, stream));
    ++submissions;
    for (unsigned node = 0; node < kNodes; ++node) {
      for (std::uint32_t i = 0; i < e2e::kCount; ++i) wanted[i] = e2e::Step(wanted[i], x[i], node);
    }
    if (launch % 4 == 3) E2E_CHECK(hipStreamSynchronize(stream));
  }
  E2E_CHECK(hipStreamSynchronize(stream));
  e2e::Finish(std::vector<e2e::Value>(pinned, pinned + e2e::kCount), wanted, graphs * kNodes, submissions);
}
