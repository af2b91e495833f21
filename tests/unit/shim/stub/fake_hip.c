/* A libamdhip64 of a few functions, to test interception without a GPU. With FAKE_HIP_TABLE it has a dispatch table and
 * registers it on the first call, as ROCm 6.2 and later do; without it behaves like older ones. With
 * FAKE_HIP_SHORT_TABLE the table ends, by its size, before the launches: a release that cannot be scheduled by its
 * table. With FAKE_HIP_7 the last error is the last failure, as from ROCm 7 on; without, what the last call returned.
 * Thread rule: one thread.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
  uint32_t x, y, z;
} dim3;

int fake_hip_calls;       /* real functions reached */
int fake_hip_device;      /* current */
int fake_hip_last_arg;    /* the last argument of the last launch, to see that none is lost on the way */
void* fake_hip_last_stop; /* the stop event of the last launch that takes one */

static int last_error;
static int refuses_to_record;
static int returns(int result) {
#ifdef FAKE_HIP_7
  if (result != 0) last_error = result;
#else
  last_error = result;
#endif
  return result;
}

#define REAL __attribute__((noinline)) static
REAL int real_launch(const void* f, dim3 grid, dim3 block, void** args, size_t shared, void* stream) {
  (void)f, (void)args, (void)stream;
  ++fake_hip_calls;
  fake_hip_last_arg = (int)(grid.x + grid.y + grid.z + block.x + block.y + block.z + shared);
  return 0;
}
REAL int real_module_launch(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                            unsigned shared, void* stream, void** params, void** extra) {
  (void)f, (void)stream, (void)params, (void)extra;
  ++fake_hip_calls;
  fake_hip_last_arg = (int)(gx + gy + gz + bx + by + bz + shared);
  return returns(7); /* an error, to be returned as it is */
}
REAL int real_ext_launch(const void* f, dim3 grid, dim3 block, void** args, size_t shared, void* stream, void* start,
                         void* stop, int flags) {
  (void)f, (void)args, (void)stream, (void)start;
  ++fake_hip_calls;
  fake_hip_last_arg = (int)(grid.x + grid.y + grid.z + block.x + block.y + block.z + shared) + flags;
  fake_hip_last_stop = stop;
  return 0;
}
REAL int real_ext_module_launch(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                size_t shared, void* stream, void** params, void** extra, void* start, void* stop,
                                unsigned flags) {
  (void)f, (void)stream, (void)params, (void)extra, (void)start;
  ++fake_hip_calls;
  fake_hip_last_arg = (int)(gx + gy + gz + bx + by + bz + shared + flags);
  fake_hip_last_stop = stop;
  return 0;
}
REAL int real_memcpy_async(void* to, const void* from, size_t n, int kind, void* stream) {
  (void)to, (void)from, (void)n, (void)kind, (void)stream;
  ++fake_hip_calls;
  return 0;
}
REAL int real_memcpy(void* to, const void* from, size_t n, int kind) {
  (void)to, (void)from, (void)n, (void)kind;
  ++fake_hip_calls;
  return 0;
}
int hipMemcpyAsync(void* to, const void* from, size_t n, int kind, void* stream);
REAL int real_memcpy_from_symbol_async(void* to, const void* symbol, size_t n, size_t offset, int kind, void* stream) {
  (void)offset;
  return hipMemcpyAsync(to, symbol, n, kind, stream); /* through the PLT, as the real one does */
}
REAL int real_stream_synchronize(void* stream) {
  (void)stream;
  ++fake_hip_calls;
  return 0;
}
REAL int real_configure(dim3 grid, dim3 block, size_t shared, void* stream) {
  (void)grid, (void)block, (void)shared, (void)stream;
  return 0;
}
REAL int real_launch_by_ptr(const void* f) {
  (void)f;
  ++fake_hip_calls; /* not by way of hipModuleLaunchKernel: as ROCm later than 7.2 does it */
  return 0;
}
REAL int real_launch_ex(const void* config, const void* f, void** args) {
  (void)f, (void)args;
  ++fake_hip_calls;
  return config ? 0 : 9; /* hipErrorInvalidConfiguration */
}
REAL int real_multi_device(const void* list, int count, unsigned flags) {
  (void)list, (void)flags;
  ++fake_hip_calls;
  return count > 0 ? 0 : 1; /* hipErrorInvalidValue */
}
REAL int real_instantiate(void** out, void* graph, void* with) {
  (void)out, (void)graph, (void)with;
  ++fake_hip_calls;
  return 0;
}
REAL int real_elapsed(float* ms, void* start, void* stop) {
  (void)start, (void)stop;
  ++fake_hip_calls;
  *ms = 1;
  return 0;
}
REAL int real_set_context(void* context) {
  fake_hip_device = (int)(intptr_t)context;
  return 0;
}
REAL int real_event_destroy(void* event);
REAL int real_version(int* version) {
#ifdef FAKE_HIP_7
  *version = 70200000;
#else
  *version = 60200000;
#endif
  return 0;
}

/* The positions in HipDispatchTable: shared reference hip-dispatch-table.txt. */
enum {
  kConfigure = 13,
  kSetContext = 29,
  kEventDestroy = 78,
  kElapsed = 79,
  kLaunchByPtr = 210,
  kMultiDevice = 212,
  kMemcpy = 259,
  kMemcpyPerThread = 390,
  kInstantiate = 438,
  kLaunchEx = 474,
  kExtLaunch = 84,
  kExtModuleLaunch = 388,
  kMemcpyAsync = 268,
  kMemcpyFromSymbolAsync = 276,
  kLaunch = 214,
  kModuleLaunch = 308,
  kStreamSynchronize = 346,
  kVersion = 326,
  kEntries = 475, /* an older release: the table ends before hipDrvLaunchKernelEx */
  kBehind = 100
};
typedef void (*function)(void);
static struct {
  size_t size;
  function entries[kEntries];
  function behind[kBehind]; /* no part of the table: nobody may touch it */
} table;
REAL int behind_the_table(void) {
  return 0;
}

#ifdef FAKE_HIP_TABLE
int rocprofiler_register_library_api_table(const char* name, function import, uint32_t version, void** tables,
                                           uint64_t count, void* identifier) __attribute__((weak));
#endif

int hipMemcpyAsync(void* to, const void* from, size_t n, int kind, void* stream);
static void prepare(void) {
  static int done;
  if (done) return;
  done = 1;
#ifdef FAKE_HIP_SHORT_TABLE
  table.size = sizeof table.size + kLaunch * sizeof(function);
#else
  table.size = sizeof table.size + sizeof table.entries;
#endif
  for (int i = 0; i < kBehind; ++i)
    table.behind[i] = (function)behind_the_table;
  table.entries[kMemcpyAsync] = (function)real_memcpy_async;
  table.entries[kMemcpyFromSymbolAsync] = (function)real_memcpy_from_symbol_async;
  table.entries[kLaunch] = (function)real_launch;
  table.entries[kModuleLaunch] = (function)real_module_launch;
  table.entries[kExtLaunch] = (function)real_ext_launch;
  table.entries[kExtModuleLaunch] = (function)real_ext_module_launch;
  table.entries[kStreamSynchronize] = (function)real_stream_synchronize;
  table.entries[kVersion] = (function)real_version;
  table.entries[kConfigure] = (function)real_configure;
  table.entries[kLaunchByPtr] = (function)real_launch_by_ptr;
  table.entries[kLaunchEx] = (function)real_launch_ex;
  table.entries[kMultiDevice] = (function)real_multi_device;
  table.entries[kMemcpy] = (function)real_memcpy;
  table.entries[kMemcpyPerThread] = (function)real_memcpy;
  table.entries[kInstantiate] = (function)real_instantiate;
  table.entries[kEventDestroy] = (function)real_event_destroy;
  table.entries[kElapsed] = (function)real_elapsed;
  table.entries[kSetContext] = (function)real_set_context;
#ifdef FAKE_HIP_TABLE
  void* tables[] = {&table};
  uint64_t identifier = 0;
  if (rocprofiler_register_library_api_table)
    rocprofiler_register_library_api_table("hip", 0, 60200, tables, 1, &identifier);
#endif
#ifdef FAKE_HIP_7
  hipMemcpyAsync(0, 0, 0, 0, 0); /* its initialisation comes by its own exports */
  --fake_hip_calls;
#endif
}
#define CALL(index, type) (prepare(), (type)table.entries[index])

#define EXPORT __attribute__((visibility("default")))
EXPORT int hipRuntimeGetVersion(int* version) {
  return CALL(kVersion, int (*)(int*))(version);
}
EXPORT int hipLaunchKernel(const void* f, dim3 grid, dim3 block, void** args, size_t shared, void* stream) {
  return CALL(kLaunch, int (*)(const void*, dim3, dim3, void**, size_t, void*))(f, grid, block, args, shared, stream);
}
EXPORT int hipModuleLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                 unsigned shared, void* stream, void** params, void** extra) {
  return CALL(kModuleLaunch, int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                                     void**, void**))(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}
EXPORT int hipExtLaunchKernel(const void* f, dim3 grid, dim3 block, void** args, size_t shared, void* stream,
                              void* start, void* stop, int flags) {
  return CALL(kExtLaunch, int (*)(const void*, dim3, dim3, void**, size_t, void*, void*, void*, int))(
      f, grid, block, args, shared, stream, start, stop, flags);
}
EXPORT int hipExtModuleLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                    unsigned bz, size_t shared, void* stream, void** params, void** extra, void* start,
                                    void* stop, unsigned flags) {
  return CALL(kExtModuleLaunch, int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, size_t,
                                        void*, void**, void**, void*, void*, unsigned))(
      f, gx, gy, gz, bx, by, bz, shared, stream, params, extra, start, stop, flags);
}
EXPORT int hipMemcpyAsync(void* to, const void* from, size_t n, int kind, void* stream) {
  return CALL(kMemcpyAsync, int (*)(void*, const void*, size_t, int, void*))(to, from, n, kind, stream);
}
EXPORT int hipMemcpyFromSymbolAsync(void* to, const void* symbol, size_t n, size_t offset, int kind, void* stream) {
  return CALL(kMemcpyFromSymbolAsync, int (*)(void*, const void*, size_t, size_t, int, void*))(to, symbol, n, offset,
                                                                                               kind, stream);
}
EXPORT int hipStreamSynchronize(void* stream) {
  return CALL(kStreamSynchronize, int (*)(void*))(stream);
}
EXPORT int hipGetProcAddress(const char* name, void** out, int version, uint64_t flags, void* status) {
  (void)version, (void)flags, (void)status;
  *out = 0;
  if (strcmp(name, "hipLaunchKernel") == 0) *out = (void*)hipLaunchKernel;
  if (strcmp(name, "hipModuleLaunchKernel") == 0) *out = (void*)real_module_launch; /* an inner function */
  return *out ? 0 : 1;
}
EXPORT int hipConfigureCall(dim3 grid, dim3 block, size_t shared, void* stream) {
  return CALL(kConfigure, int (*)(dim3, dim3, size_t, void*))(grid, block, shared, stream);
}
EXPORT int hipLaunchByPtr(const void* f) {
  return CALL(kLaunchByPtr, int (*)(const void*))(f);
}
EXPORT int hipLaunchKernelExC(const void* config, const void* f, void** args) {
  return CALL(kLaunchEx, int (*)(const void*, const void*, void**))(config, f, args);
}
EXPORT int hipLaunchCooperativeKernelMultiDevice(const void* list, int count, unsigned flags) {
  return CALL(kMultiDevice, int (*)(const void*, int, unsigned))(list, count, flags);
}
EXPORT int hipGraphInstantiateWithParams(void** out, void* graph, void* with) {
  return CALL(kInstantiate, int (*)(void**, void*, void*))(out, graph, with);
}
EXPORT int hipMemcpy(void* to, const void* from, size_t n, int kind) {
  return CALL(kMemcpy, int (*)(void*, const void*, size_t, int))(to, from, n, kind);
}
EXPORT int hipMemcpy_spt(void* to, const void* from, size_t n, int kind) {
  return CALL(kMemcpyPerThread, int (*)(void*, const void*, size_t, int))(to, from, n, kind);
}
EXPORT int hipEventElapsedTime(float* ms, void* start, void* stop) {
  return CALL(kElapsed, int (*)(float*, void*, void*))(ms, start, stop);
}
EXPORT int hipCtxSetCurrent(void* context) {
  return CALL(kSetContext, int (*)(void*))(context);
}
EXPORT int hipGetDeviceCount(int* count) {
  *count = 2;
  return 0;
}
EXPORT int hipDeviceGetPCIBusId(char* out, int size, int device) {
  static const char address[] = "0000:c0:00.0";
  if (size < (int)sizeof address) return 1;
  memcpy(out, address, sizeof address);
  out[6] = (char)('0' + device);
  return 0;
}
EXPORT int hipGetDevice(int* device) {
  *device = fake_hip_device;
  return 0;
}
/* The handle that was freed last is reused first, as on a heap. */
enum { kEvents = 16 };
static char events[kEvents][16];
static void* given_back[kEvents];
static int left;
static int made;
EXPORT int hipEventCreate(void** out) {
  if (left == 0 && made == kEvents) return 2;
  return *out = left > 0 ? given_back[--left] : events[made++], 0;
}
REAL int real_event_destroy(void* event) {
  return given_back[left++] = event, 0;
}
EXPORT int hipEventDestroy(void* event) {
  return CALL(kEventDestroy, int (*)(void*))(event);
}
EXPORT int hipEventRecord(void* event, void* stream) {
  (void)event, (void)stream;
  return returns(refuses_to_record ? 2 : 0);
}
EXPORT int hipPeekAtLastError(void) {
  return last_error;
}
EXPORT int hipGetLastError(void) {
  const int error = last_error;
  last_error = 0;
  return error;
}
EXPORT void fake_hip_refuse_to_record(int refuses) {
  refuses_to_record = refuses;
}
EXPORT int fake_hip_errors_last(void) {
#ifdef FAKE_HIP_7
  return 1;
#else
  return 0;
#endif
}
EXPORT int hip_not_an_entry_point(void) {
  return 5;
}
EXPORT int hipMalloc(void** out, size_t n) {
  *out = (void*)n;
  return 0;
}
EXPORT int* fake_hip_counter(void) {
  return &fake_hip_calls;
}
EXPORT int* fake_hip_argument(void) {
  return &fake_hip_last_arg;
}
EXPORT void** fake_hip_stop(void) {
  return &fake_hip_last_stop;
}
EXPORT int fake_hip_has_table(void) {
#if defined FAKE_HIP_TABLE && !defined FAKE_HIP_SHORT_TABLE
  return 1;
#else
  return 0;
#endif
}
/* How many functions behind the table's end, in memory or by its size, were replaced. */
EXPORT int fake_hip_touched(void) {
  int touched = 0;
  for (int i = 0; i < kBehind; ++i)
    touched += table.behind[i] != (function)behind_the_table;
#ifdef FAKE_HIP_SHORT_TABLE
  touched +=
      table.entries[kLaunch] != (function)real_launch || table.entries[kModuleLaunch] != (function)real_module_launch;
#endif
  return touched;
}
