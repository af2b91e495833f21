// Four threads launch at the same time: two on the default stream (each with a buffer of its own), two on streams of
// their own. Every thread checks its own buffer.
#include <thread>

#include "program.h"

namespace {

void Work(unsigned thread, unsigned launches, std::uint64_t micros, std::vector<e2e::Value>* got,
          std::vector<e2e::Value>* wanted) {
  const std::vector<e2e::Value> x = e2e::InitialX();
  e2e::Value *device_x, *device_y;
  hipStream_t stream = nullptr;
  if (thread >= 2) E2E_CHECK(hipStreamCreate(&stream));
  E2E_CHECK(hipMalloc(reinterpret_cast<void**>(&device_x), e2e::kBytes));
  E2E_CHECK(hipMalloc(reinterpret_cast<void**>(&device_y), e2e::kBytes));
  E2E_CHECK(hipMemcpy(device_x, x.data(), e2e::kBytes, hipMemcpyHostToDevice));
  E2E_CHECK(hipMemcpy(device_y, wanted->data(), e2e::kBytes, hipMemcpyHostToDevice));
  for (unsigned launch = 0; launch < launches; ++launch) {
    scale_add<<<2, 128, 0, stream>>>(device_y, device_x, launch + thread, e2e::kCount, micros);
    E2E_CHECK(hipGetLastError());
    for (std::uint32_t i = 0; i < e2e::kCount; ++i) (*wanted)[i] = e2e::Step((*wanted)[i], x[i], launch + thread);
    if (launch % 8 == 7) E2E_CHECK(hipStreamSynchronize(stream));
  }
  E2E_CHECK(hipStreamSynchronize(stream));
  E2E_CHECK(hipMemcpy(got->data(), device_y, e2e::kBytes, hipMemcpyDeviceToHost));
}

}  // namespace

int main(int argc, char** argv) {
  constexpr unsigned kThreads = 4;
  const e2e::Arguments arguments = e2e::ParseArguments(argc, argv);
  const unsigned each = arguments.launches / kThreads;
  std::vector<std::vector<e2e::Value>> got(kThreads), wanted(kThreads);
  // libamdhip64 5.2.3 loads code with the first launch, and crashes if two threads make it at the same time, also without
  // the shim (2 of 250 runs). This loads it, and launches nothing.
  hipFuncAttributes attributes;
  E2E_CHECK(hipFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&scale_add)));
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    got[t].resize(e2e::kCount);
    wanted[t].assign(e2e::kCount, t);
    threads.emplace_back(Work, t, each, arguments.micros, &got[t], &wanted[t]);
  }
  std::vector<e2e::Value> all_got, all_wanted;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads[t].join();
    all_got.insert(all_got.end(), got[t].begin(), got[t].end());
    all_wanted.insert(all_wanted.end(), wanted[t].begin(), wanted[t].end());
  }
  e2e::Finish(all_got, all_wanted, each * kThreads, kThreads * (each + 3));
}
