// A training step as data-parallel programs make it: layers on one stream, and behind each bucket of them, on another, a
// kernel that averages gradients and waits for peers while the next layers run.
//
//   PROGRAM STEPS MICROS     MICROS: of each of the kBuckets averages; a bucket of layers takes as long
#include "program.h"

namespace {

constexpr unsigned kBuckets = 4;
constexpr unsigned kLayers = 40;  // of a bucket

struct Queue {
  hipStream_t stream = nullptr;
  hipEvent_t reached = nullptr;
  e2e::Value* values = nullptr;
  std::vector<e2e::Value> model = std::vector<e2e::Value>(e2e::kCount, 1);
  unsigned launches = 0;

  Queue() {
    E2E_CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    E2E_CHECK(hipEventCreateWithFlags(&reached, hipEventDisableTiming));
    E2E_CHECK(hipMalloc(reinterpret_cast<void**>(&values), e2e::kBytes));
    E2E_CHECK(hipMemcpy(values, model.data(), e2e::kBytes, hipMemcpyHostToDevice));
  }
  void Launch(unsigned blocks, std::uint64_t micros) {
    scale_add<<<blocks, 128, 0, stream>>>(values, values, launches, e2e::kCount, micros);
    E2E_CHECK(hipGetLastError());
    for (e2e::Value& value : model)
      value = e2e::Step(value, value, launches);
    ++launches;
  }
  void WaitFor(const Queue& other) {
    E2E_CHECK(hipEventRecord(other.reached, other.stream));
    E2E_CHECK(hipStreamWaitEvent(stream, other.reached, 0));
  }
};

}  // namespace

int main(int argc, char** argv) {
  const e2e::Arguments arguments = e2e::ParseArguments(argc, argv);
  Queue layers, averages;
  for (unsigned step = 0; step < arguments.launches; ++step) {
    for (unsigned bucket = 0; bucket < kBuckets; ++bucket) {
      for (unsigned layer = 0; layer < kLayers; ++layer)
        layers.Launch(2, arguments.micros / kLayers);
      averages.WaitFor(layers);
      averages.Launch(4, arguments.micros);
    }
    layers.WaitFor(averages);
    E2E_CHECK(hipStreamSynchronize(layers.stream));
  }
  std::vector<e2e::Value> got(e2e::kCount);
  E2E_CHECK(hipMemcpy(got.data(), averages.values, e2e::kBytes, hipMemcpyDeviceToHost));
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] != averages.model[i]) {
      std::fprintf(stderr, "wrong: average %zu is %u, should be %u\n", i, got[i], averages.model[i]);
      return 1;
    }
  }
  E2E_CHECK(hipMemcpy(got.data(), layers.values, e2e::kBytes, hipMemcpyDeviceToHost));
  const unsigned launches = layers.launches + averages.launches;
  e2e::Finish(got, layers.model, launches, launches + 4);
}
