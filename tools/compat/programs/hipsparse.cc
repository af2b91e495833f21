// hipSPARSE, a wrapper of rocSPARSE: a sparse matrix times a vector through its generic interface.
#include <hip/hip_runtime.h>
#include <hipsparse/hipsparse.h>

#include "check.h"
#include "sparse_matrix.h"

int main() {
  compat::SparseMatrix m;
  if (!m.Make()) return compat::Finish();
  hipStream_t stream = nullptr;
  hipsparseHandle_t handle = nullptr;
  hipsparseSpMatDescr_t matrix = nullptr;
  hipsparseDnVecDescr_t x = nullptr;
  hipsparseDnVecDescr_t y = nullptr;
  CALL(hipStreamCreate(&stream));
  NEED(hipsparseCreate(&handle));
  NEED(hipsparseCreateCsr(&matrix, m.kRows, m.kRows, m.kEntries, m.row_begin, m.column, m.value, HIPSPARSE_INDEX_32I,
                          HIPSPARSE_INDEX_32I, HIPSPARSE_INDEX_BASE_ZERO, HIP_R_32F));
  NEED(hipsparseCreateDnVec(&x, m.kRows, m.x, HIP_R_32F));
  NEED(hipsparseCreateDnVec(&y, m.kRows, m.y, HIP_R_32F));
  const float one = 1.0F;
  size_t bytes = 0;
  void* buffer = nullptr;
  const auto none = HIPSPARSE_OPERATION_NON_TRANSPOSE;
  const auto algorithm = HIPSPARSE_SPMV_ALG_DEFAULT;
  NEED(hipsparseSpMV_bufferSize(handle, none, &one, matrix, x, &one, y, HIP_R_32F, algorithm, &bytes));
  if (bytes > 0) NEED(hipMalloc(&buffer, bytes));  // if it needs none, none must be passed
  NEED(hipsparseSpMV_preprocess(handle, none, &one, matrix, x, &one, y, HIP_R_32F, algorithm, buffer));
  for (int round = 0; round < compat::Rounds(); ++round) {
    CALL(hipsparseSetStream(handle, round % 2 == 0 ? nullptr : stream));
    CALL(hipsparseSpMV(handle, none, &one, matrix, x, &one, y, HIP_R_32F, algorithm, buffer));
    CALL(hipDeviceSynchronize());
  }
  CALL(hipsparseDestroyDnVec(y));
  CALL(hipsparseDestroyDnVec(x));
  CALL(hipsparseDestroySpMat(matrix));
  CALL(hipsparseDestroy(handle));
  CALL(hipStreamDestroy(stream));
  return compat::Finish();
}
