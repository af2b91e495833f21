// The oldest way to launch: configuration, arguments and function in three calls. The runtime turns the last one into
// hipModuleLaunchKernel by its own export, where the shim intercepts it: hipLaunchByPtr itself does not name the
// stream.
#include "program.h"

int main(int argc, char** argv) {
  const e2e::Arguments arguments = e2e::ParseArguments(argc, argv);
  const std::vector<e2e::Value> x = e2e::InitialX();
  std::vector<e2e::Value> wanted(e2e::kCount, 7), got(e2e::kCount);
  e2e::Value *device_x, *device_y;
  hipStream_t stream;
  unsigned submissions = 0;

  E2E_CHECK(hipStreamCreate(&stream));
  E2E_CHECK(hipMalloc(reinterpret_cast<void**>(&device_x), e2e::kBytes));
  E2E_CHECK(hipMalloc(reinterpret_cast<void**>(&device_y), e2e::kBytes));
  E2E_CHECK(hipMemcpy(device_x, x.data(), e2e::kBytes, hipMemcpyHostToDevice));
  E2E_CHECK(hipMemcpy(device_y, wanted.data(), e2e::kBytes, hipMemcpyHostToDevice));
  submissions += 2;
  const std::uint32_t count = e2e::kCount;
  for (unsigned launch = 0; launch < arguments.launches; ++launch) {
    const e2e::Value step = launch;
    E2E_CHECK(hipConfigureCall(dim3(2), dim3(128), 0, stream));
    E2E_CHECK(hipSetupArgument(&device_y, 8, 0));
    E2E_CHECK(hipSetupArgument(&device_x, 8, 8));
    E2E_CHECK(hipSetupArgument(&step, 4, 16));
    E2E_CHECK(hipSetupArgument(&count, 4, 20));
    E2E_CHECK(hipSetupArgument(&arguments.micros, 8, 24));
    E2E_CHECK(hipLaunchByPtr(reinterpret_cast<const void*>(&scale_add)));
    ++submissions;
    for (std::uint32_t i = 0; i < e2e::kCount; ++i)
      wanted[i] = e2e::Step(wanted[i], x[i], step);
    if (launch % 10 == 9) E2E_CHECK(hipStreamSynchronize(stream));
  }
  E2E_CHECK(hipStreamSynchronize(stream));
  E2E_CHECK(hipMemcpy(got.data(), device_y, e2e::kBytes, hipMemcpyDeviceToHost));
  ++submissions;
  e2e::Finish(got, wanted, arguments.launches, submissions);
}
