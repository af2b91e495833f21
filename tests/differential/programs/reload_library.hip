// The library that `reload` opens and closes: it links HIP and has a kernel of its own.
#include "tests/e2e/programs/kernels.h"

// Launches `launches` kernels. `waits`: their result is in `values`; else they are left in flight, with their memory.
extern "C" __attribute__((visibility("default"))) int reload_work(e2e::Value* values, unsigned launches, int waits) {
  constexpr std::uint32_t kCount = 4;
  e2e::Value *y = nullptr, *x = nullptr;
  hipStream_t stream = nullptr;
  int error = hipMalloc(reinterpret_cast<void**>(&y), kCount * sizeof *y);
  if (error == 0) error = hipMalloc(reinterpret_cast<void**>(&x), kCount * sizeof *x);
  if (error == 0) error = hipMemset(y, 0, kCount * sizeof *y);
  if (error == 0) error = hipMemset(x, 1, kCount * sizeof *x);
  if (error == 0) error = hipDeviceSynchronize();
  if (error == 0) error = hipStreamCreate(&stream);
  for (unsigned step = 0; error == 0 && step < launches; ++step) {
    scale_add<<<1, 64, 0, stream>>>(y, x, step, kCount, 300);
    error = hipGetLastError();
  }
  if (error != 0 || waits == 0) return error;
  error = hipStreamSynchronize(stream);
  if (error == 0) error = hipMemcpy(values, y, kCount * sizeof *y, hipMemcpyDeviceToHost);
  if (error == 0) error = hipStreamDestroy(stream);
  return error;
}
