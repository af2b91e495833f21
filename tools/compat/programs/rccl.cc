// RCCL: an all-reduce over two devices of one process, grouped and with a communicator each, on the program's own
// streams.
#include <hip/hip_runtime.h>
#include <rccl/rccl.h>

#include "check.h"

namespace {
constexpr int kDevices = 2;
constexpr size_t kN = 1 << 16;
}  // namespace

int main() {
  int devices = 0;
  NEED(hipGetDeviceCount(&devices));
  if (devices < kDevices) {
    compat::Check("two devices", -1);
    return compat::Finish();
  }
  ncclComm_t communicator[kDevices] = {};
  hipStream_t stream[kDevices] = {};
  float* from[kDevices] = {};
  float* to[kDevices] = {};
  for (int d = 0; d < kDevices; ++d) {
    NEED(hipSetDevice(d));
    NEED(hipStreamCreate(&stream[d]));
    NEED(hipMalloc(&from[d], kN * sizeof(float)));
    NEED(hipMalloc(&to[d], kN * sizeof(float)));
    CALL(hipMemset(from[d], 0, kN * sizeof(float)));
  }
  const int list[kDevices] = {0, 1};
  NEED(ncclCommInitAll(communicator, kDevices, list));
  for (int round = 0; round < compat::Rounds(); ++round) {
    CALL(ncclGroupStart());
    for (int d = 0; d < kDevices; ++d) {
      CALL(ncclAllReduce(from[d], to[d], kN, ncclFloat, ncclSum, communicator[d], stream[d]));
    }
    CALL(ncclGroupEnd());
    CALL(ncclGroupStart());
    for (int d = 0; d < kDevices; ++d) {
      CALL(ncclBroadcast(from[d], to[d], kN, ncclFloat, 0, communicator[d], stream[d]));
    }
    CALL(ncclGroupEnd());
    for (int d = 0; d < kDevices; ++d) {
      CALL(hipSetDevice(d));
      CALL(hipStreamSynchronize(stream[d]));
    }
  }
  for (ncclComm_t c : communicator)
    CALL(ncclCommDestroy(c));
  return compat::Finish();
}
