// Launches on the default stream, where PyTorch and vLLM work, with a synchronisation every ten launches.
#include "program.h"

int main(int argc, char** argv) {
  const e2e::Arguments arguments = e2e::ParseArguments(argc, argv);
  const std::vector<e2e::Value> x = e2e::InitialX();
  std::vector<e2e::Value> wanted(e2e::kCount, 7), got(e2e::kCount);
  e2e::Value *device_x, *device_y;
  unsigned submissions = 0;

  E2E_CHECK(hipMalloc(reinterpret_cast<void**>(&device_x), e2e::kBytes));
  E2E_CHECK(hipMalloc(reinterpret_cast<void**>(&device_y), e2e::kBytes));
  E2E_CHECK(hipMemcpy(device_x, x.data(), e2e::kBytes, hipMemcpyHostToDevice));
  E2E_CHECK(hipMemcpy(device_y, wanted.data(), e2e::kBytes, hipMemcpyHostToDevice));
  submissions += 2;
  for (unsigned launch = 0; launch < arguments.launches; ++launch) {
    scale_add<<<2, 128>>>(device_y, device_x, launch, e2e::kCount, arguments.micros);
    E2E_CHECK(hipGetLastError());
    ++submissions;
    for (std::uint32_t i = 0; i < e2e::kCount; ++i) wanted[i] = e2e::Step(wanted[i], x[i], launch);
    if (launch % 10 == 9) E2E_CHECK(hipStreamSynchronize(nullptr));
  }
  E2E_CHECK(hipMemcpy(got.data(), device_y, e2e::kBytes, hipMemcpyDeviceToHost));
  ++submissions;
  e2e::Finish(got, wanted, arguments.launches, submissions);
}
