/* A libnvidia-ml of one device: ordinal 1 of the fake CUDA driver (fake_cuda_memory.c), or, as any other handle, one
 * that the driver does not have. It has 100 GiB, of which 40 are in use by all processes. Thread rule: any thread. */
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define GIB (1ull << 30)

struct memory {
  unsigned long long total, free, used;
};
struct memory_v2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};

EXPORT int nvmlDeviceGetUUID(void* device, char* out, unsigned size) {
  const char* uuid =
      device == (void*)1 ? "GPU-00000000-0000-0000-0000-000000000001" : "GPU-00000000-0000-0000-0000-0000000000ff";
  if (size <= strlen(uuid)) return 7; /* NVML_ERROR_INSUFFICIENT_SIZE */
  strcpy(out, uuid);
  return 0;
}
EXPORT int nvmlDeviceGetMemoryInfo(void* device, struct memory* out) {
  if (device == (void*)0) return 2; /* NVML_ERROR_INVALID_ARGUMENT */
  out->total = 100 * GIB;
  out->free = 60 * GIB;
  out->used = 40 * GIB;
  return 0;
}
EXPORT int nvmlDeviceGetMemoryInfo_v2(void* device, struct memory_v2* out) {
  (void)device;
  out->total = 100 * GIB;
  out->reserved = GIB;
  out->free = 60 * GIB;
  out->used = 39 * GIB;
  return 0;
}
EXPORT int nvmlDeviceGetMemoryBusWidth(void* device, unsigned* out) {
  (void)device;
  *out = 5120;
  return 0;
}
