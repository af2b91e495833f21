// Two non-blocking streams that pass a buffer to each other with events: each launch needs the other stream's last one.
// A gate that held only one stream of the process could cause a deadlock here.
#include "program.h"

int main(int argc, char** argv) {
  const e2e::Arguments arguments = e2e::ParseArguments(argc, argv);
  std::vector<e2e::Value> host[2] = {std::vector<e2e::Value>(e2e::kCount, 1), e2e::InitialX()};
  std::vector<e2e::Value> got(e2e::kCount);
  e2e::Value* device[2];
  hipStream_t stream[2];
  hipEvent_t done[2];
  unsigned submissions = 0;

  for (int s = 0; s < 2; ++s) {
    E2E_CHECK(hipMalloc(reinterpret_cast<void**>(&device[s]), e2e::kBytes));
    E2E_CHECK(hipMemcpy(device[s], host[s].data(), e2e::kBytes, hipMemcpyHostToDevice));
    E2E_CHECK(hipStreamCreateWithFlags(&stream[s], hipStreamNonBlocking));
    E2E_CHECK(hipEventCreateWithFlags(&done[s], hipEventDisableTiming));
    ++submissions;
  }
  for (unsigned launch = 0; launch < arguments.launches; ++launch) {
    const int mine = static_cast<int>(launch % 2), other = 1 - mine;
    if (launch > 0) E2E_CHECK(hipStreamWaitEvent(stream[mine], done[other], 0));
    scale_add<<<2, 128, 0, stream[mine]>>>(device[mine], device[other], launch, e2e::kCount, arguments.micros);
    E2E_CHECK(hipGetLastError());
    E2E_CHECK(hipEventRecord(done[mine], stream[mine]));
    ++submissions;
    for (std::uint32_t i = 0; i < e2e::kCount; ++i) host[mine][i] = e2e::Step(host[mine][i], host[other][i], launch);
  }
  E2E_CHECK(hipStreamSynchronize(stream[0]));
  E2E_CHECK(hipStreamSynchronize(stream[1]));
  const int last = static_cast<int>((arguments.launches - 1) % 2);
  E2E_CHECK(hipMemcpy(got.data(), device[last], e2e::kBytes, hipMemcpyDeviceToHost));
  ++submissions;
  e2e::Finish(got, host[last], arguments.launches, submissions);
}
