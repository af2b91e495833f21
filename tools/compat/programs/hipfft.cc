// hipFFT, a wrapper of rocFFT.
#include <hip/hip_runtime.h>
#include <hipfft/hipfft.h>

#include "check.h"

namespace {
constexpr int kLength = 2048;
constexpr int kBatch = 8;
}  // namespace

int main() {
  hipfftComplex* data = nullptr;
  hipStream_t stream = nullptr;
  hipfftHandle one = 0;
  hipfftHandle two = 0;
  NEED(hipMalloc(&data, sizeof(hipfftComplex) * kLength * kBatch * 4));
  CALL(hipStreamCreate(&stream));
  NEED(hipfftPlan1d(&one, kLength, HIPFFT_C2C, kBatch));
  NEED(hipfftPlan2d(&two, 128, 128, HIPFFT_C2C));
  for (int round = 0; round < compat::Rounds(); ++round) {
    CALL(hipfftSetStream(one, round % 2 == 0 ? nullptr : stream));
    CALL(hipfftExecC2C(one, data, data, HIPFFT_FORWARD));
    CALL(hipfftExecC2C(two, data, data, HIPFFT_FORWARD));
    CALL(hipDeviceSynchronize());
  }
  CALL(hipfftDestroy(two));
  CALL(hipfftDestroy(one));
  CALL(hipStreamDestroy(stream));
  return compat::Finish();
}
