// hipRAND, a wrapper of rocRAND.
#include <hip/hip_runtime.h>
#include <hiprand/hiprand.h>

#include "check.h"

namespace {
constexpr size_t kN = 1 << 16;
}  // namespace

int main() {
  float* data = nullptr;
  hipStream_t stream = nullptr;
  hiprandGenerator_t generator = nullptr;
  NEED(hipMalloc(&data, kN * sizeof(float)));
  CALL(hipStreamCreate(&stream));
  NEED(hiprandCreateGenerator(&generator, HIPRAND_RNG_PSEUDO_PHILOX4_32_10));
  CALL(hiprandSetPseudoRandomGeneratorSeed(generator, 1));
  for (int round = 0; round < compat::Rounds(); ++round) {
    CALL(hiprandSetStream(generator, round % 2 == 0 ? nullptr : stream));
    CALL(hiprandGenerateUniform(generator, data, kN));
    CALL(hiprandGenerateNormal(generator, data, kN, 0.0F, 1.0F));
    CALL(hipDeviceSynchronize());
  }
  CALL(hiprandDestroyGenerator(generator));
  CALL(hipStreamDestroy(stream));
  return compat::Finish();
}
