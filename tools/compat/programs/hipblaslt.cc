// hipBLASLt: a matrix product by the algorithms that its heuristic offers, on a stream and on the default stream.
#include <hip/hip_runtime.h>
#include <hipblaslt/hipblaslt.h>

#include "check.h"

namespace {
constexpr int kN = 512;
constexpr size_t kBytes = size_t{kN} * kN * sizeof(float);
constexpr size_t kWorkspace = size_t{32} << 20;
constexpr int kWanted = 3;
}  // namespace

int main() {
  float* matrix[3] = {};
  void* workspace = nullptr;
  hipStream_t stream = nullptr;
  hipblasLtHandle_t handle = nullptr;
  for (float*& m : matrix) {
    NEED(hipMalloc(&m, kBytes));
    CALL(hipMemset(m, 0, kBytes));
  }
  NEED(hipMalloc(&workspace, kWorkspace));
  CALL(hipStreamCreate(&stream));
  NEED(hipblasLtCreate(&handle));
  hipblasLtMatrixLayout_t layout[3] = {};
  for (auto& l : layout)
    NEED(hipblasLtMatrixLayoutCreate(&l, HIP_R_32F, kN, kN, kN));
  hipblasLtMatmulDesc_t description = nullptr;
  NEED(hipblasLtMatmulDescCreate(&description, HIPBLAS_COMPUTE_32F, HIP_R_32F));
  hipblasLtMatmulPreference_t preference = nullptr;
  NEED(hipblasLtMatmulPreferenceCreate(&preference));
  CALL(hipblasLtMatmulPreferenceSetAttribute(preference, HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace,
                                             sizeof kWorkspace));
  hipblasLtMatmulHeuristicResult_t found[kWanted];
  int count = 0;
  NEED(hipblasLtMatmulAlgoGetHeuristic(handle, description, layout[0], layout[1], layout[2], layout[2], preference,
                                       kWanted, found, &count));
  std::printf("algorithms offered: %d\n", count);
  if (count == 0) compat::Check("no algorithm", -1);
  const float alpha = 1.0F;
  const float beta = 0.0F;
  for (int round = 0; round < compat::Rounds(); ++round) {
    for (int i = 0; i < count; ++i) {
      CALL(hipblasLtMatmul(handle, description, &alpha, matrix[0], layout[0], matrix[1], layout[1], &beta, matrix[2],
                           layout[2], matrix[2], layout[2], &found[i].algo, workspace, kWorkspace,
                           round % 2 == 0 ? nullptr : stream));
    }
    CALL(hipDeviceSynchronize());
  }
  CALL(hipblasLtMatmulPreferenceDestroy(preference));
  CALL(hipblasLtMatmulDescDestroy(description));
  for (auto l : layout)
    CALL(hipblasLtMatrixLayoutDestroy(l));
  CALL(hipblasLtDestroy(handle));
  CALL(hipStreamDestroy(stream));
  return compat::Finish();
}
