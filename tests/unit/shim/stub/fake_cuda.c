/* A libcuda of a few functions, to test interception without a GPU. Its results are invented; but as in driver 580,
 * versions of a function are separate exports, and cuGetProcAddress chooses among them by CUDA version and flag. With
 * FAKE_CUDA_INNER it returns inner functions instead of its exports. Thread rule: any thread; the last call is recorded
 * for each thread. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define INNER __attribute__((noinline)) static

static int calls;                  /* real functions reached */
static __thread long last;         /* the sum of the last call's arguments, to see that none is lost on the way */
static __thread const char* which; /* the last real function */
static __thread void* current = (void*)0x10;
static int retained; /* of the primary context */

static int note(const char* name, long sum, int result) {
  __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  which = name;
  last = sum;
  return result;
}

INNER int launch(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                 void* s, void** params, void** extra) {
  (void)f, (void)params, (void)extra;
  return note("cuLaunchKernel", (long)(gx + gy + gz + bx + by + bz + shared) + (long)(intptr_t)s, 0);
}
INNER int launch_ptsz(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, void* s, void** params, void** extra) {
  (void)f, (void)params, (void)extra;
  return note("cuLaunchKernel_ptsz", (long)(gx + gy + gz + bx + by + bz + shared) + (long)(intptr_t)s, 7);
}
INNER int batch(void** to, void** from, size_t* sizes, size_t count, void* attributes, size_t* indexes, size_t n,
                size_t* failed, void* s) {
  (void)to, (void)from, (void)sizes, (void)attributes, (void)indexes;
  return note("cuMemcpyBatchAsync", (long)(count + n) + (long)(intptr_t)failed + (long)(intptr_t)s, 0);
}
INNER int batch_v2(void** to, void** from, size_t* sizes, size_t count, void* attributes, size_t* indexes, size_t n,
                   void* s) {
  (void)to, (void)from, (void)sizes, (void)attributes, (void)indexes;
  return note("cuMemcpyBatchAsync_v2", (long)(count + n) + (long)(intptr_t)s, 0);
}
INNER int sync_context(void) {
  return note("cuCtxSynchronize", 0, 0);
}
INNER int sync_context_v2(void* context) {
  return note("cuCtxSynchronize_v2", (long)(intptr_t)context, 0);
}

EXPORT int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void* s, void** params, void** extra) {
  return launch(f, gx, gy, gz, bx, by, bz, shared, s, params, extra);
}
EXPORT int cuLaunchKernel_ptsz(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                               unsigned shared, void* s, void** params, void** extra) {
  return launch_ptsz(f, gx, gy, gz, bx, by, bz, shared, s, params, extra);
}
EXPORT int cuMemcpyBatchAsync(void** to, void** from, size_t* sizes, size_t count, void* attributes, size_t* indexes,
                              size_t n, size_t* failed, void* s) {
  return batch(to, from, sizes, count, attributes, indexes, n, failed, s);
}
EXPORT int cuMemcpyBatchAsync_v2(void** to, void** from, size_t* sizes, size_t count, void* attributes, size_t* indexes,
                                 size_t n, void* s) {
  return batch_v2(to, from, sizes, count, attributes, indexes, n, s);
}
EXPORT int cuCtxSynchronize(void) {
  return sync_context();
}
EXPORT int cuCtxSynchronize_v2(void* context) {
  return sync_context_v2(context);
}
EXPORT int cuMemsetD8Async(uint64_t to, unsigned char value, size_t n, void* s) {
  return note("cuMemsetD8Async", (long)(to + value + n) + (long)(intptr_t)s, 0);
}
/* Calls another entry point through the PLT. */
EXPORT int cuMemcpy(uint64_t to, uint64_t from, size_t n) {
  return cuMemsetD8Async(to, (unsigned char)from, n, NULL);
}
EXPORT int cuLaunchFuture(void) {
  return 0;
}

EXPORT int cuInit(unsigned flags) {
  return (int)flags;
}
EXPORT int cuDriverGetVersion(int* version) {
  return *version = 13000, 0;
}
EXPORT int cuCtxGetCurrent(void** context) {
  return *context = current, 0;
}
EXPORT int cuCtxPushCurrent_v2(void* context) {
  return current = context, 0;
}
EXPORT int cuCtxPopCurrent_v2(void** context) {
  return *context = current, 0;
}
EXPORT int cuCtxGetDevice(int* device) {
  return *device = 3, 0;
}
EXPORT int cuCtxSetCurrent(void* context) {
  return current = context, 0;
}

EXPORT int cuDeviceGetCount(int* count) {
  return *count = 2, 0;
}
EXPORT int cuLaunchCooperativeKernelMultiDevice(const void* list, unsigned count, unsigned flags) {
  (void)list;
  return note("cuLaunchCooperativeKernelMultiDevice", (long)(count + flags), count > 2 ? 1 : 0);
}
/* The last release destroys the context; a release without a retain is an error. */
EXPORT int cuDevicePrimaryCtxRetain(void** out, int device) {
  *out = (void*)0x10;
  return __atomic_add_fetch(&retained, 1, __ATOMIC_RELAXED), device == 3 ? 0 : 101;
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
  if (device != 3 || retained == 0) return 201;
  return __atomic_sub_fetch(&retained, 1, __ATOMIC_RELAXED), 0;
}
EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return *flags = 0, *active = device == 3 && retained > 0, 0;
}
EXPORT int fake_cuda_retain_unseen(void) {
  return __atomic_add_fetch(&retained, 1, __ATOMIC_RELAXED);
}
/* Of three handles the one that was freed last is reused first, as on a heap. */
static char events[3];
static void* given_back[3] = {&events[0], &events[1], &events[2]};
static int left = 3;
EXPORT int cuEventCreate(void** out, unsigned flags) {
  (void)flags;
  if (left == 0) return 2;
  return *out = given_back[--left], 0;
}
EXPORT int cuEventDestroy_v2(void* event) {
  return given_back[left++] = event, 0;
}
static void* last_recorded;
EXPORT int cuEventRecord(void* event, void* stream) {
  (void)stream;
  return last_recorded = event, 0;
}
EXPORT void* fake_cuda_recorded(void) {
  return last_recorded;
}

EXPORT int cuGetProcAddress(const char* name, void** out, int version, uint64_t flags);
EXPORT int cuGetProcAddress_v2(const char* name, void** out, int version, uint64_t flags, int* status);

#ifdef FAKE_CUDA_INNER
#define ADDRESS(exported, inner) (void*)inner
#else
#define ADDRESS(exported, inner) (void*)exported
#endif
static void* find(const char* name, int version, uint64_t flags) {
  const int per_thread = (flags & 2) != 0;
  if (strcmp(name, "cuLaunchKernel") == 0 && version >= 4000) {
    /* The newest version, which no list has, has other parameters. */
    if (version >= 14000) return (void*)cuLaunchFuture;
    if (per_thread) return version >= 7000 ? ADDRESS(cuLaunchKernel_ptsz, launch_ptsz) : NULL;
    return ADDRESS(cuLaunchKernel, launch);
  }
  if (strcmp(name, "cuMemcpyBatchAsync") == 0 && version >= 13000) return ADDRESS(cuMemcpyBatchAsync_v2, batch_v2);
  if (strcmp(name, "cuMemcpyBatchAsync") == 0 && version >= 12080) return ADDRESS(cuMemcpyBatchAsync, batch);
  if (strcmp(name, "cuCtxSynchronize") == 0 && version >= 13000) return ADDRESS(cuCtxSynchronize_v2, sync_context_v2);
  if (strcmp(name, "cuCtxSynchronize") == 0) return ADDRESS(cuCtxSynchronize, sync_context);
  if (strcmp(name, "cuInit") == 0) return (void*)cuInit;
  if (strcmp(name, "cuGetProcAddress") == 0) {
    return version >= 12000 ? (void*)cuGetProcAddress_v2 : version >= 11030 ? (void*)cuGetProcAddress : NULL;
  }
  return NULL;
}
EXPORT int cuGetProcAddress(const char* name, void** out, int version, uint64_t flags) {
  *out = find(name, version, flags);
  return *out != NULL ? 0 : 500;
}
EXPORT int cuGetProcAddress_v2(const char* name, void** out, int version, uint64_t flags, int* status) {
  *out = find(name, version, flags);
  if (status != NULL) *status = *out != NULL ? 0 : 1;
  return *out != NULL ? 0 : 500;
}

EXPORT int fake_cuda_calls(void) {
  return calls;
}
EXPORT long fake_cuda_last(void) {
  return last;
}
EXPORT const char* fake_cuda_which(void) {
  return which;
}
