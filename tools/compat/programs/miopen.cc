// MIOpen: a convolution forward, found and run, and an activation, on a stream and on the default stream. MIOpen
// compiles kernels at run time, in this process and in helper processes.
#include <hip/hip_runtime.h>
#include <miopen/miopen.h>

#include <algorithm>

#include "check.h"

namespace {

constexpr int kFound = 4;

int Run(hipStream_t stream, bool on_stream, int rounds) {
  miopenHandle_t handle = nullptr;
  if (on_stream) {
    NEED(miopenCreateWithStream(&handle, stream));
  } else {
    NEED(miopenCreate(&handle));
  }
  miopenTensorDescriptor_t input = nullptr;
  miopenTensorDescriptor_t weights = nullptr;
  miopenTensorDescriptor_t output = nullptr;
  miopenConvolutionDescriptor_t convolution = nullptr;
  miopenActivationDescriptor_t activation = nullptr;
  NEED(miopenCreateTensorDescriptor(&input));
  NEED(miopenCreateTensorDescriptor(&weights));
  NEED(miopenCreateTensorDescriptor(&output));
  NEED(miopenSet4dTensorDescriptor(input, miopenFloat, 1, 16, 32, 32));
  NEED(miopenSet4dTensorDescriptor(weights, miopenFloat, 16, 16, 3, 3));
  NEED(miopenCreateConvolutionDescriptor(&convolution));
  NEED(miopenInitConvolutionDescriptor(convolution, miopenConvolution, 1, 1, 1, 1, 1, 1));
  int n = 0;
  int c = 0;
  int h = 0;
  int w = 0;
  NEED(miopenGetConvolutionForwardOutputDim(convolution, input, weights, &n, &c, &h, &w));
  NEED(miopenSet4dTensorDescriptor(output, miopenFloat, n, c, h, w));
  float* x = nullptr;
  float* f = nullptr;
  float* y = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
  NEED(hipMalloc(&x, sizeof(float) * 16 * 32 * 32));
  NEED(hipMalloc(&f, sizeof(float) * 16 * 16 * 3 * 3));
  NEED(hipMalloc(&y, sizeof(float) * n * c * h * w));
  NEED(miopenConvolutionForwardGetWorkSpaceSize(handle, weights, input, convolution, output, &workspace_bytes));
  NEED(hipMalloc(&workspace, std::max<size_t>(workspace_bytes, 1)));
  miopenConvAlgoPerf_t found[kFound];
  int count = 0;
  NEED(miopenFindConvolutionForwardAlgorithm(handle, input, x, weights, f, convolution, output, y, kFound, &count,
                                             found, workspace, workspace_bytes, false));
  if (count == 0) compat::Check("no algorithm found", -1);
  const float one = 1.0F;
  const float zero = 0.0F;
  NEED(miopenCreateActivationDescriptor(&activation));
  NEED(miopenSetActivationDescriptor(activation, miopenActivationRELU, 0, 0, 0));
  for (int round = 0; round < rounds && count > 0; ++round) {
    CALL(miopenConvolutionForward(handle, &one, input, x, weights, f, convolution, found[0].fwd_algo, &zero, output, y,
                                  workspace, workspace_bytes));
    CALL(miopenActivationForward(handle, activation, &one, output, y, &zero, output, y));
    CALL(hipDeviceSynchronize());
  }
  CALL(miopenDestroyActivationDescriptor(activation));
  CALL(miopenDestroyConvolutionDescriptor(convolution));
  for (auto descriptor : {input, weights, output})
    CALL(miopenDestroyTensorDescriptor(descriptor));
  CALL(miopenDestroy(handle));
  for (void* memory : {static_cast<void*>(x), static_cast<void*>(f), static_cast<void*>(y), workspace}) {
    CALL(hipFree(memory));
  }
  return 0;
}

}  // namespace

int main() {
  hipStream_t stream = nullptr;
  NEED(hipStreamCreate(&stream));
  if (Run(nullptr, false, compat::Rounds()) != 0 || Run(stream, true, compat::Rounds()) != 0) return 1;
  CALL(hipStreamDestroy(stream));
  return compat::Finish();
}
