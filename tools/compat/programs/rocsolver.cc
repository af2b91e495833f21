// rocSOLVER: an LU factorisation and a solve, on the default stream and on the program's own stream.
#include <hip/hip_runtime.h>
#include <rocsolver/rocsolver.h>

#include "check.h"

namespace {
constexpr int kN = 128;
}  // namespace

int main() {
  float* a = nullptr;
  float* b = nullptr;
  int* pivots = nullptr;
  int* info = nullptr;
  hipStream_t stream = nullptr;
  rocblas_handle handle = nullptr;
  NEED(hipMalloc(&a, sizeof(float) * kN * kN));
  NEED(hipMalloc(&b, sizeof(float) * kN));
  NEED(hipMalloc(&pivots, sizeof(int) * kN));
  NEED(hipMalloc(&info, sizeof(int)));
  CALL(hipMemset(a, 0, sizeof(float) * kN * kN));
  CALL(hipMemset(pivots, 0, sizeof(int) * kN));
  CALL(hipStreamCreate(&stream));
  NEED(rocblas_create_handle(&handle));
  for (int round = 0; round < compat::Rounds(); ++round) {
    CALL(rocblas_set_stream(handle, round % 2 == 0 ? nullptr : stream));
    CALL(rocsolver_sgetrf(handle, kN, kN, a, kN, pivots, info));
    CALL(rocsolver_sgetrs(handle, rocblas_operation_none, kN, 1, a, kN, pivots, b, kN));
    CALL(rocsolver_spotrf(handle, rocblas_fill_lower, kN, a, kN, info));
    CALL(hipDeviceSynchronize());
  }
  CALL(rocblas_destroy_handle(handle));
  CALL(hipStreamDestroy(stream));
  return compat::Finish();
}
