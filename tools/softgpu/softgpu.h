/* Public interface of the software GPU: how a kernel gets a host function and a duration.
 *
 * The software GPU does not execute GPU code. A kernel is known by its symbol name; a kernel table may give it a host
 * function that computes its results and a function that returns its duration. Kernels without either only take time.
 *
 * A table comes from
 *   - each shared object named in SOFTGPU_KERNELS (paths separated by colons), and
 *   - the program itself, when it exports `softgpu_kernels` (linked with -rdynamic).
 * The first table that names a kernel wins, in that order.
 *
 * Thread rule: run and cost_ns are called from the packet processor thread of the hardware queue, one dispatch of a
 * queue at a time, dispatches of different queues concurrently. They must not call HIP or HSA. cost_ns is called first,
 * then run, between the dispatch's simulated start and end; if run takes longer than the dispatch's duration, the
 * completion is late on the host, while the time stamps stay those of the device model.
 */
#ifndef SOFTGPU_H
#define SOFTGPU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SOFTGPU_ABI_VERSION 1u

/* One kernel dispatch. Valid only during the call it is passed to. */
typedef struct softgpu_dispatch {
  uint32_t abi_version;          /* SOFTGPU_ABI_VERSION of the software GPU */
  uint32_t device;               /* ordinal of the device among those of the software GPU, not of HIP_VISIBLE_DEVICES */
  uint32_t queue;                /* ordinal of the hardware queue in this process */
  uint32_t workgroups[3];        /* gridDim in HIP's words */
  uint32_t workgroup_size[3];    /* blockDim in HIP's words */
  uint32_t grid_size[3];         /* work items, as in the AQL packet */
  uint32_t group_segment_size;   /* bytes of LDS, static and dynamic */
  uint32_t private_segment_size; /* bytes of scratch for each work item */
  uint32_t kernarg_size;         /* bytes at kernarg, hidden arguments included; 0 when the code object does not say */
  const void* kernarg;           /* arguments in order of declaration, each at its natural alignment */
  const char* name;              /* symbol name, without ".kd" */
} softgpu_dispatch;

typedef struct softgpu_kernel {
  const char* name;                             /* symbol name as in the code object: mangled, without ".kd" */
  void (*run)(const softgpu_dispatch*);         /* null: the kernel computes nothing */
  uint64_t (*cost_ns)(const softgpu_dispatch*); /* null: SOFTGPU_DURATIONS, else the cost model */
} softgpu_kernel;

typedef struct softgpu_kernel_table {
  uint32_t abi_version; /* SOFTGPU_ABI_VERSION the table was compiled with */
  uint32_t count;
  const softgpu_kernel* kernels;
} softgpu_kernel_table;

/* Exported by a kernel library or the program. Returns null when it cannot serve abi_version. The table and all it
 * points to must stay valid until the process ends. */
__attribute__((visibility("default"))) const softgpu_kernel_table* softgpu_kernels(uint32_t abi_version);

#ifdef __cplusplus
}
#endif

#endif /* SOFTGPU_H */
