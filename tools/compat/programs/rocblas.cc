// rocBLAS: vector and matrix routines, batched too, on the default stream and on the program's own stream, with scalars
// on the host and on the device.
#include <hip/hip_runtime.h>
#include <rocblas/rocblas.h>

#include <utility>

#include "check.h"

namespace {
constexpr int kN = 256;
constexpr int kBatch = 4;
constexpr size_t kMatrix = size_t{kN} * kN;
constexpr size_t kBytes = kMatrix * kBatch * sizeof(float);

struct Buffers {
  float* a = nullptr;
  float* b = nullptr;
  float* c = nullptr;
  float* scalar = nullptr;  // on the device
  float** a_list = nullptr;
  float** b_list = nullptr;
  float** c_list = nullptr;
};

void Work(rocblas_handle handle, const Buffers& m) {
  const float one = 1.0F;
  float result = 0;
  const auto none = rocblas_operation_none;
  CALL(rocblas_set_pointer_mode(handle, rocblas_pointer_mode_host));
  CALL(rocblas_sgemm(handle, none, none, kN, kN, kN, &one, m.a, kN, m.b, kN, &one, m.c, kN));
  CALL(rocblas_sgemm_strided_batched(handle, none, rocblas_operation_transpose, kN, kN, kN, &one, m.a, kN, kMatrix, m.b,
                                     kN, kMatrix, &one, m.c, kN, kMatrix, kBatch));
  CALL(rocblas_sgemm_batched(handle, none, none, kN, kN, kN, &one, m.a_list, kN, m.b_list, kN, &one, m.c_list, kN,
                             kBatch));
  CALL(rocblas_sgemv(handle, none, kN, kN, &one, m.a, kN, m.b, 1, &one, m.c, 1));
  CALL(rocblas_saxpy(handle, kN, &one, m.a, 1, m.b, 1));
  CALL(rocblas_sdot(handle, kN, m.a, 1, m.b, 1, &result));
  CALL(rocblas_set_pointer_mode(handle, rocblas_pointer_mode_device));
  CALL(rocblas_sdot(handle, kN, m.a, 1, m.b, 1, m.scalar));
  CALL(rocblas_saxpy(handle, kN, m.scalar, m.a, 1, m.b, 1));
  CALL(rocblas_strsm(handle, rocblas_side_left, rocblas_fill_lower, none, rocblas_diagonal_unit, kN, kN, m.scalar, m.a,
                     kN, m.b, kN));
}
}  // namespace

int main() {
  Buffers m;
  hipStream_t stream = nullptr;
  rocblas_handle handle = nullptr;
  for (float** buffer : {&m.a, &m.b, &m.c}) {
    NEED(hipMalloc(buffer, kBytes));
    CALL(hipMemset(*buffer, 0, kBytes));
  }
  NEED(hipMalloc(&m.scalar, sizeof(float)));
  CALL(hipMemset(m.scalar, 0, sizeof(float)));
  for (const auto& [list, base] : {std::pair{&m.a_list, m.a}, {&m.b_list, m.b}, {&m.c_list, m.c}}) {
    float* pointers[kBatch];
    for (int i = 0; i < kBatch; ++i)
      pointers[i] = base + i * kMatrix;
    NEED(hipMalloc(list, sizeof pointers));
    CALL(hipMemcpy(*list, pointers, sizeof pointers, hipMemcpyHostToDevice));
  }
  CALL(hipStreamCreate(&stream));
  NEED(rocblas_create_handle(&handle));
  for (int round = 0; round < compat::Rounds(); ++round) {
    CALL(rocblas_set_stream(handle, round % 2 == 0 ? nullptr : stream));
    Work(handle, m);
    CALL(hipDeviceSynchronize());
  }
  CALL(rocblas_destroy_handle(handle));
  CALL(hipStreamDestroy(stream));
  return compat::Finish();
}
