// Stands in for NVML where there is no NVIDIA driver: two GPUs, the second with more processes than fit at first.
#include <stdio.h>
#include <string.h>

struct pci {
  char legacy[16];
  unsigned numbers[5];
  char bus_id[32];
};
struct process {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};

int nvmlInit_v2(void) {
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** gpu) {
  static const char kGpus[2];
  *gpu = (void*)&kGpus[index];
  return 0;
}
static int is_second(const void* gpu) {
  void* second = NULL;
  nvmlDeviceGetHandleByIndex_v2(1, &second);
  return gpu == second;
}
int nvmlDeviceGetPciInfo_v3(void* gpu, struct pci* pci) {
  memset(pci, 0, sizeof *pci);
  snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%s:00.0", is_second(gpu) ? "C1" : "06");
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* gpu, unsigned* count, struct process* processes) {
  const unsigned all = is_second(gpu) ? 100 : 2;
  if (*count < all) {
    *count = all;
    return 7;
  }
  for (unsigned i = 0; i < all; ++i)
    processes[i] = (struct process){.pid = 1000 + i, .used = (i + 1) * 1048576ull};
  // Under some virtual GPUs the memory is not known.
  if (!is_second(gpu)) processes[1].used = ~0ull;
  *count = all;
  return 0;
}
