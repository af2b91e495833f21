// rocFFT: plans whose kernels it compiles at run time, in helper processes, executed on a stream and on the default
// stream.
#include <hip/hip_runtime.h>
#include <rocfft/rocfft.h>

#include "check.h"

namespace {
constexpr size_t kLength = 4096;
constexpr size_t kBatch = 8;
}  // namespace

int main() {
  void* data = nullptr;
  void* work = nullptr;
  hipStream_t stream = nullptr;
  NEED(hipMalloc(&data, kLength * kBatch * 2 * sizeof(float)));
  CALL(hipStreamCreate(&stream));
  NEED(rocfft_setup());
  const size_t square[2] = {256, 256};
  rocfft_plan plans[3] = {};
  NEED(rocfft_plan_create(&plans[0], rocfft_placement_inplace, rocfft_transform_type_complex_forward,
                          rocfft_precision_single, 1, &kLength, kBatch, nullptr));
  NEED(rocfft_plan_create(&plans[1], rocfft_placement_inplace, rocfft_transform_type_complex_inverse,
                          rocfft_precision_single, 1, &kLength, kBatch, nullptr));
  NEED(rocfft_plan_create(&plans[2], rocfft_placement_inplace, rocfft_transform_type_complex_forward,
                          rocfft_precision_single, 2, square, 1, nullptr));
  rocfft_execution_info info = nullptr;
  NEED(rocfft_execution_info_create(&info));
  size_t largest = 1;
  for (rocfft_plan plan : plans) {
    size_t bytes = 0;
    CALL(rocfft_plan_get_work_buffer_size(plan, &bytes));
    largest = bytes > largest ? bytes : largest;
  }
  NEED(hipMalloc(&work, largest));
  CALL(rocfft_execution_info_set_work_buffer(info, work, largest));
  for (int round = 0; round < compat::Rounds(); ++round) {
    CALL(rocfft_execution_info_set_stream(info, round % 2 == 0 ? nullptr : stream));
    for (rocfft_plan plan : plans)
      CALL(rocfft_execute(plan, &data, nullptr, info));
    CALL(hipDeviceSynchronize());
  }
  CALL(rocfft_execution_info_destroy(info));
  for (rocfft_plan plan : plans)
    CALL(rocfft_plan_destroy(plan));
  CALL(rocfft_cleanup());
  CALL(hipStreamDestroy(stream));
  return compat::Finish();
}
