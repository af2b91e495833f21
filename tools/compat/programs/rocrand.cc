// rocRAND: uniform and normal numbers of several generators, on the default stream and on the program's own stream.
#include <hip/hip_runtime.h>
#include <rocrand/rocrand.h>

#include "check.h"

namespace {
constexpr size_t kN = 1 << 16;

int Run(rocrand_rng_type type, hipStream_t stream, float* data, unsigned* integers) {
  rocrand_generator generator = nullptr;
  NEED(rocrand_create_generator(&generator, type));
  CALL(rocrand_set_seed(generator, 1));
  for (int round = 0; round < compat::Rounds(); ++round) {
    CALL(rocrand_set_stream(generator, round % 2 == 0 ? nullptr : stream));
    CALL(rocrand_generate(generator, integers, kN));
    CALL(rocrand_generate_uniform(generator, data, kN));
    CALL(rocrand_generate_normal(generator, data, kN, 0.0F, 1.0F));
    CALL(hipDeviceSynchronize());
  }
  CALL(rocrand_destroy_generator(generator));
  return 0;
}
}  // namespace

int main() {
  float* data = nullptr;
  unsigned* integers = nullptr;
  hipStream_t stream = nullptr;
  NEED(hipMalloc(&data, kN * sizeof(float)));
  NEED(hipMalloc(&integers, kN * sizeof(unsigned)));
  CALL(hipStreamCreate(&stream));
  for (auto type : {ROCRAND_RNG_PSEUDO_DEFAULT, ROCRAND_RNG_PSEUDO_PHILOX4_32_10, ROCRAND_RNG_PSEUDO_MRG32K3A}) {
    if (Run(type, stream, data, integers) != 0) return 1;
  }
  CALL(hipStreamDestroy(stream));
  return compat::Finish();
}
