// hipBLAS, a wrapper of rocBLAS: a handle, and the same kinds of calls as rocblas.cc.
#include <hip/hip_runtime.h>
#include <hipblas/hipblas.h>

#include "check.h"

namespace {
constexpr int kN = 256;
constexpr int kBatch = 4;
constexpr size_t kMatrix = size_t{kN} * kN;
constexpr size_t kBytes = kMatrix * kBatch * sizeof(float);
}  // namespace

int main() {
  float* a = nullptr;
  float* b = nullptr;
  float* c = nullptr;
  float* scalar = nullptr;
  float* host_pointers[kBatch];
  float** pointers = nullptr;
  hipStream_t stream = nullptr;
  hipblasHandle_t handle = nullptr;
  NEED(hipMalloc(&a, kBytes));
  NEED(hipMalloc(&b, kBytes));
  NEED(hipMalloc(&c, kBytes));
  NEED(hipMalloc(&scalar, sizeof(float)));
  NEED(hipMalloc(&pointers, sizeof host_pointers));
  CALL(hipMemset(a, 0, kBytes));
  CALL(hipMemset(b, 0, kBytes));
  CALL(hipMemset(scalar, 0, sizeof(float)));
  for (int i = 0; i < kBatch; ++i)
    host_pointers[i] = a + i * kMatrix;
  CALL(hipMemcpy(pointers, host_pointers, sizeof host_pointers, hipMemcpyHostToDevice));
  CALL(hipStreamCreate(&stream));
  NEED(hipblasCreate(&handle));
  const float one = 1.0F;
  float result = 0;
  for (int round = 0; round < compat::Rounds(); ++round) {
    CALL(hipblasSetStream(handle, round % 2 == 0 ? nullptr : stream));
    CALL(hipblasSetPointerMode(handle, HIPBLAS_POINTER_MODE_HOST));
    CALL(hipblasSgemm(handle, HIPBLAS_OP_N, HIPBLAS_OP_N, kN, kN, kN, &one, a, kN, b, kN, &one, c, kN));
    CALL(hipblasSgemmStridedBatched(handle, HIPBLAS_OP_N, HIPBLAS_OP_T, kN, kN, kN, &one, a, kN, kMatrix, b, kN,
                                    kMatrix, &one, c, kN, kMatrix, kBatch));
    CALL(hipblasSgemmBatched(handle, HIPBLAS_OP_N, HIPBLAS_OP_N, kN, kN, kN, &one, pointers, kN, pointers, kN, &one,
                             pointers, kN, kBatch));
    CALL(hipblasSaxpy(handle, kN, &one, a, 1, b, 1));
    CALL(hipblasSdot(handle, kN, a, 1, b, 1, &result));
    CALL(hipblasSetPointerMode(handle, HIPBLAS_POINTER_MODE_DEVICE));
    CALL(hipblasSdot(handle, kN, a, 1, b, 1, scalar));
    CALL(hipDeviceSynchronize());
  }
  CALL(hipblasDestroy(handle));
  CALL(hipStreamDestroy(stream));
  return compat::Finish();
}
