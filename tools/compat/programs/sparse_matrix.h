// A sparse matrix on the device for the sparse libraries: kRows rows of two entries, in compressed-row format. Thread
// rule: none.
#pragma once

#include <hip/hip_runtime.h>

#include <vector>

#include "check.h"

namespace compat {

struct SparseMatrix {
  static constexpr int kRows = 1024;
  static constexpr int kEntries = 2 * kRows;
  int* row_begin = nullptr;
  int* column = nullptr;
  float* value = nullptr;
  float* x = nullptr;
  float* y = nullptr;

  bool Make() {
    std::vector<int> begin(kRows + 1);
    std::vector<int> columns(kEntries);
    const std::vector<float> values(kEntries, 1.0F);
    for (int row = 0; row < kRows; ++row) {
      begin[row + 1] = 2 * (row + 1);
      columns[2 * row] = row / 2;
      columns[2 * row + 1] = kRows / 2 + row / 2;
    }
    return CALL(hipMalloc(&row_begin, begin.size() * sizeof(int))) &&
           CALL(hipMalloc(&column, columns.size() * sizeof(int))) &&
           CALL(hipMalloc(&value, values.size() * sizeof(float))) && CALL(hipMalloc(&x, kRows * sizeof(float))) &&
           CALL(hipMalloc(&y, kRows * sizeof(float))) &&
           CALL(hipMemcpy(row_begin, begin.data(), begin.size() * sizeof(int), hipMemcpyHostToDevice)) &&
           CALL(hipMemcpy(column, columns.data(), columns.size() * sizeof(int), hipMemcpyHostToDevice)) &&
           CALL(hipMemcpy(value, values.data(), values.size() * sizeof(float), hipMemcpyHostToDevice)) &&
           CALL(hipMemset(x, 0, kRows * sizeof(float))) && CALL(hipMemset(y, 0, kRows * sizeof(float)));
  }
};

}  // namespace compat
