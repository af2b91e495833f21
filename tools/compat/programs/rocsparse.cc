// rocSPARSE: a sparse matrix times a vector, with and without analysis, and level 1, on two streams.
#include <hip/hip_runtime.h>
#include <rocsparse/rocsparse.h>

#include "check.h"
#include "sparse_matrix.h"

int main() {
  compat::SparseMatrix m;
  if (!m.Make()) return compat::Finish();
  hipStream_t stream = nullptr;
  rocsparse_handle handle = nullptr;
  rocsparse_mat_descr description = nullptr;
  rocsparse_mat_info info = nullptr;
  CALL(hipStreamCreate(&stream));
  NEED(rocsparse_create_handle(&handle));
  NEED(rocsparse_create_mat_descr(&description));
  NEED(rocsparse_create_mat_info(&info));
  const float one = 1.0F;
  const auto none = rocsparse_operation_none;
  NEED(rocsparse_scsrmv_analysis(handle, none, m.kRows, m.kRows, m.kEntries, description, m.value, m.row_begin,
                                 m.column, info));
  for (int round = 0; round < compat::Rounds(); ++round) {
    CALL(rocsparse_set_stream(handle, round % 2 == 0 ? nullptr : stream));
    for (rocsparse_mat_info with : {info, rocsparse_mat_info{nullptr}}) {
      CALL(rocsparse_scsrmv(handle, none, m.kRows, m.kRows, m.kEntries, &one, description, m.value, m.row_begin,
                            m.column, with, m.x, &one, m.y));
    }
    CALL(rocsparse_saxpyi(handle, m.kRows / 2, &one, m.value, m.column, m.y, rocsparse_index_base_zero));
    CALL(hipDeviceSynchronize());
  }
  CALL(rocsparse_destroy_mat_info(info));
  CALL(rocsparse_destroy_mat_descr(description));
  CALL(rocsparse_destroy_handle(handle));
  CALL(hipStreamDestroy(stream));
  return compat::Finish();
}
