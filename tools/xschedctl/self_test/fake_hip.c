/* A libamdhip64 with one simulated device and no GPU: a "kernel" is 2 ms of elapsed time. With it the self test of
 * `xschedctl doctor` takes the path of a real program: preloaded shim, private library, session, gates. Like HIP of
 * ROCm 5 it has no dispatch table and is intercepted by its symbols. The device's time is per process: only the shim's
 * gate makes one process wait for another.
 *
 * Thread rule: the clocks are shared between the launching thread and the shim's. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define KERNEL_NS 2000000u

enum { kSuccess = 0, kInvalidValue = 1, kNotReady = 600 };

typedef struct {
  uint32_t x, y, z;
} dim3;

static uint64_t done_ns; /* when all that was launched has finished */
static const char* address = "ffff:ff:1f.7";

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void wait_until(uint64_t end_ns) {
  struct timespec end = {(time_t)(end_ns / 1000000000u), (long)(end_ns % 1000000000u)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) != 0) {
  }
}

/* Which device the self test's clients share, so that two self tests at a time do not meet. */
EXPORT void self_test_address(const char* pci_address) {
  address = pci_address;
}

EXPORT int hipLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, void* stream) {
  (void)function, (void)grid, (void)block, (void)arguments, (void)shared, (void)stream;
  const uint64_t now = now_ns();
  const uint64_t before = __atomic_load_n(&done_ns, __ATOMIC_RELAXED);
  __atomic_store_n(&done_ns, (before > now ? before : now) + KERNEL_NS, __ATOMIC_RELAXED);
  return kSuccess;
}
EXPORT int hipStreamSynchronize(void* stream) {
  (void)stream;
  wait_until(__atomic_load_n(&done_ns, __ATOMIC_RELAXED));
  return kSuccess;
}
EXPORT int hipDeviceSynchronize(void) {
  return hipStreamSynchronize(NULL);
}

EXPORT int hipEventCreate(uint64_t** event) {
  *event = calloc(1, sizeof **event);
  return *event != NULL ? kSuccess : 2;
}
EXPORT int hipEventDestroy(uint64_t* event) {
  free(event);
  return kSuccess;
}
EXPORT int hipEventRecord(uint64_t* event, void* stream) {
  (void)stream;
  const uint64_t now = now_ns();
  const uint64_t done = __atomic_load_n(&done_ns, __ATOMIC_RELAXED);
  __atomic_store_n(event, done > now ? done : now, __ATOMIC_RELAXED);
  return kSuccess;
}
EXPORT int hipEventQuery(uint64_t* event) {
  return now_ns() >= __atomic_load_n(event, __ATOMIC_RELAXED) ? kSuccess : kNotReady;
}
EXPORT int hipEventSynchronize(uint64_t* event) {
  wait_until(__atomic_load_n(event, __ATOMIC_RELAXED));
  return kSuccess;
}
EXPORT int hipEventElapsedTime(float* milliseconds, uint64_t* from, uint64_t* to) {
  if (hipEventQuery(from) != kSuccess || hipEventQuery(to) != kSuccess) return kNotReady;
  *milliseconds = (float)((double)*to - (double)*from) / 1e6f;
  return kSuccess;
}

EXPORT int hipRuntimeGetVersion(int* version) {
  *version = 50200000;
  return kSuccess;
}
EXPORT int hipGetDeviceCount(int* count) {
  *count = 1;
  return kSuccess;
}
EXPORT int hipGetDevice(int* device) {
  *device = 0;
  return kSuccess;
}
EXPORT int hipSetDevice(int device) {
  return device == 0 ? kSuccess : kInvalidValue;
}
EXPORT int hipGetStreamDeviceId(void* stream) {
  (void)stream;
  return 0;
}
EXPORT int hipDeviceGetPCIBusId(char* out, int size, int device) {
  if (device != 0 || size <= (int)strlen(address)) return kInvalidValue;
  memcpy(out, address, strlen(address) + 1);
  return kSuccess;
}
EXPORT int hipDeviceGetName(char* out, int size, int device) {
  static const char name[] = "xschedctl's self test (no device)";
  if (device != 0 || size < (int)sizeof name) return kInvalidValue;
  memcpy(out, name, sizeof name);
  return kSuccess;
}
EXPORT int hipDeviceGetAttribute(int* value, int attribute, int device) {
  (void)attribute, (void)device;
  *value = 1;
  return kSuccess;
}
EXPORT int hipStreamIsCapturing(void* stream, int* status) {
  (void)stream;
  *status = 0;
  return kSuccess;
}
EXPORT int hipGetLastError(void) {
  return kSuccess;
}
