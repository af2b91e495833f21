/* The part of the fake CUDA driver (fake_cuda.c) that has device memory: handles are invented, and what a call was told
 * is checked by whoever calls. The device has 100 GiB, and never runs out. Thread rule: one thread. */
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

static int calls; /* allocations and frees that reached the driver */
static int refuses;
static uint64_t next = 0x10000000;

static int give(uint64_t* out) {
  ++calls;
  if (refuses) return 1;
  *out = next;
  next += 0x100000;
  return 0;
}
static int take(void) {
  ++calls;
  return refuses ? 1 : 0;
}

EXPORT int cuMemAlloc_v2(uint64_t* out, size_t n) {
  (void)n;
  return give(out);
}
EXPORT int cuMemAllocManaged(uint64_t* out, size_t n, unsigned flags) {
  (void)n, (void)flags;
  return give(out);
}
EXPORT int cuMemAllocPitch_v2(uint64_t* out, size_t* pitch, size_t w, size_t h, unsigned element) {
  (void)h, (void)element;
  *pitch = (w + 511) / 512 * 512;
  return give(out);
}
EXPORT int cuArrayCreate_v2(uint64_t* out, const void* shape) {
  (void)shape;
  return give(out);
}
EXPORT int cuArray3DCreate_v2(uint64_t* out, const void* shape) {
  (void)shape;
  return give(out);
}
EXPORT int cuMipmappedArrayCreate(uint64_t* out, const void* shape, unsigned levels) {
  (void)shape, (void)levels;
  return give(out);
}
EXPORT int cuMemAllocAsync(uint64_t* out, size_t n, void* stream) {
  (void)n, (void)stream;
  return give(out);
}
EXPORT int cuMemAllocFromPoolAsync(uint64_t* out, size_t n, void* pool, void* stream) {
  (void)n, (void)pool, (void)stream;
  return give(out);
}
EXPORT int cuMemCreate(uint64_t* out, size_t n, const void* with, unsigned long long flags) {
  (void)n, (void)with, (void)flags;
  return give(out);
}
EXPORT int cuGraphAddMemAllocNode(uint64_t* out, void* graph, const void* nodes, size_t count, void* node) {
  (void)graph, (void)nodes, (void)count, (void)node;
  return give(out);
}
EXPORT int cuGraphAddNode_v2(uint64_t* out, void* graph, const void* nodes, const void* edges, size_t count,
                             void* node) {
  (void)graph, (void)nodes, (void)edges, (void)count, (void)node;
  return give(out);
}
EXPORT int cuMemFree_v2(uint64_t at) {
  (void)at;
  return take();
}
EXPORT int cuMemFreeAsync(uint64_t at, void* stream) {
  (void)at, (void)stream;
  return take();
}
EXPORT int cuArrayDestroy(uint64_t array) {
  (void)array;
  return take();
}
EXPORT int cuMipmappedArrayDestroy(uint64_t array) {
  (void)array;
  return take();
}
EXPORT int cuMemRelease(uint64_t memory) {
  (void)memory;
  return take();
}
EXPORT int cuMemMap(uint64_t at, size_t n, size_t offset, uint64_t memory, unsigned long long flags) {
  (void)at, (void)n, (void)offset, (void)memory, (void)flags;
  return take();
}
EXPORT int cuMemUnmap(uint64_t at, size_t n) {
  (void)at, (void)n;
  return take();
}
/* Of memory that is mapped at the value of its handle. */
EXPORT int cuMemRetainAllocationHandle(uint64_t* out, void* at) {
  *out = (uint64_t)(uintptr_t)at;
  return take();
}
EXPORT int cuMemPoolCreate(uint64_t* out, const void* with) {
  (void)with;
  return give(out);
}
EXPORT int cuMemPoolDestroy(uint64_t pool) {
  (void)pool;
  return take();
}
EXPORT int cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = (size_t)90 << 30;
  *total = (size_t)100 << 30;
  return 0;
}
EXPORT int cuDeviceTotalMem_v2(size_t* total, int device) {
  (void)device;
  *total = (size_t)100 << 30;
  return 0;
}
EXPORT int cuCtxDestroy_v2(void* context) {
  (void)context;
  return take();
}
/* As NVML has it (fake_nvml.c). */
EXPORT int cuDeviceGetUuid_v2(unsigned char* out, int device) {
  for (int i = 0; i < 16; ++i)
    out[i] = 0;
  out[15] = (unsigned char)device;
  return 0;
}
EXPORT int fake_cuda_memory_calls(void) {
  return calls;
}
EXPORT void fake_cuda_memory_refuse(int yes) {
  refuses = yes;
}
