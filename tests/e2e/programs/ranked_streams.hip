// ranked_streams REQUESTS KERNELS MICROS
// A thread keeps a stream of low priority full with kernels that fill the device; the main thread makes REQUESTS on a
// stream of high priority, one after the other: KERNELS kernels and a synchronisation. Prints "streams held: NS", the
// time that its threads waited for its own streams, and the verdict of program.h.
#define XSCHEDD_DLSYM
#include <atomic>
#include <thread>

#include "client-shim/include/xschedd.h"
#include "program.h"

namespace {

constexpr unsigned kBlocks = 8000;  // the whole device

}  // namespace

int main(int argc, char** argv) {
  const unsigned requests = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 20;
  const unsigned kernels = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 4;
  const std::uint64_t micros = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 500;
  constexpr unsigned kAhead = 64;
  e2e::Value *low_values, *high_values, *x;
  hipStream_t low, high;
  const std::vector<e2e::Value> host_x = e2e::InitialX();
  std::vector<e2e::Value> wanted(e2e::kCount, 0), got(e2e::kCount);
  for (e2e::Value** one : {&low_values, &high_values, &x}) {
    E2E_CHECK(hipMalloc(reinterpret_cast<void**>(one), e2e::kBytes));
    E2E_CHECK(hipMemset(*one, 0, e2e::kBytes));
  }
  E2E_CHECK(hipMemcpy(x, host_x.data(), e2e::kBytes, hipMemcpyHostToDevice));
  E2E_CHECK(hipStreamCreateWithPriority(&high, hipStreamNonBlocking, -1));
  E2E_CHECK(hipStreamCreateWithFlags(&low, hipStreamNonBlocking));

  std::atomic<bool> stop{false};
  std::atomic<unsigned> launched{0};
  std::thread background([&] {
    while (!stop) {
      for (unsigned i = 0; i < kAhead && !stop; ++i) {
        scale_add<<<kBlocks, 128, 0, low>>>(low_values, x, 0, e2e::kCount, micros);
        E2E_CHECK(hipGetLastError());
        ++launched;
      }
      E2E_CHECK(hipStreamSynchronize(low));
    }
  });
  while (launched < 2 * kAhead)
    std::this_thread::yield();
  for (unsigned request = 0; request < requests; ++request) {
    for (unsigned kernel = 0; kernel < kernels; ++kernel) {
      scale_add<<<kBlocks, 128, 0, high>>>(high_values, x, kernel, e2e::kCount, micros);
      E2E_CHECK(hipGetLastError());
      for (std::uint32_t i = 0; i < e2e::kCount; ++i)
        wanted[i] = e2e::Step(wanted[i], host_x[i], kernel);
    }
    E2E_CHECK(hipStreamSynchronize(high));
  }
  // The other thread's launches continue once no request is in their way.
  const unsigned before = launched;
  while (launched < before + kAhead)
    std::this_thread::yield();
  stop = true;
  background.join();
  E2E_CHECK(hipMemcpy(got.data(), high_values, e2e::kBytes, hipMemcpyDeviceToHost));
  xschedd_status status{};
  status.size = sizeof status;
  xschedd_get_status(&status);
  std::printf("streams held: %llu\n", status.streams_held_ns);
  const unsigned launches = requests * kernels + launched;
  e2e::Finish(got, wanted, launches, launches + 2);
}
