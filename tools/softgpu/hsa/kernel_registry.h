// Kernels as the host knows them: the tables of softgpu.h, loaded once, and the kernels of loaded code objects. Thread
// rule: any thread.
#pragma once

#include <cstdint>
#include <string>

#include "tools/softgpu/softgpu.h"

namespace softgpu {

struct Kernel {
  std::string name;  // without ".kd"
  uint32_t kernarg_size = 0;
  uint32_t group_segment_size = 0;
  uint32_t private_segment_size = 0;
  const softgpu_kernel* host = nullptr;  // null: in no table
  bool is_blit = false;                  // one of the HIP runtime's own copy and fill kernels
};

// Kernels by kernel object, the address of the kernel descriptor, which is what a dispatch packet names.
void add_kernel(uint64_t kernel_object, Kernel kernel);
void remove_kernel(uint64_t kernel_object);
// Null: unknown. Valid until the code object is unloaded, which must not happen while a dispatch of it is pending.
const Kernel* find_kernel(uint64_t kernel_object);

// Whether it ends as a kernel with an illegal instruction does: the queue's error callback is called, and the dispatch
// never completes.
bool ends_in_fault(const Kernel& kernel);

// Loads the libraries of SOFTGPU_KERNELS on the first call. Null: no table names it.
const softgpu_kernel* find_host_kernel(const std::string& name);

}  // namespace softgpu
