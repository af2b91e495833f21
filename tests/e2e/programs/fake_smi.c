/* A rocm_smi and an amdsmi of one device, the first of the software GPU (0000:05:00.0), which here has 64 GiB of which
 * 40 are in use by all processes; and of a second one that the process does not have. Thread rule: any thread. */
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int rsmi_dev_pci_id_get(uint32_t device, uint64_t* out) {
  *out = device == 0 ? 0x0500 : 0x9900;
  return 0;
}
EXPORT int rsmi_dev_memory_total_get(uint32_t device, int type, uint64_t* out) {
  (void)device, (void)type;
  *out = (uint64_t)64 << 30;
  return 0;
}
EXPORT int rsmi_dev_memory_usage_get(uint32_t device, int type, uint64_t* out) {
  (void)device, (void)type;
  *out = (uint64_t)40 << 30;
  return 0;
}
EXPORT int amdsmi_get_gpu_device_bdf(void* device, uint64_t* out) {
  *out = device == (void*)1 ? 0x0500 : 0x9900;
  return 0;
}
EXPORT int amdsmi_get_gpu_memory_total(void* device, int type, uint64_t* out) {
  (void)device, (void)type;
  *out = (uint64_t)64 << 30;
  return 0;
}
EXPORT int amdsmi_get_gpu_memory_usage(void* device, int type, uint64_t* out) {
  (void)device, (void)type;
  *out = (uint64_t)40 << 30;
  return 0;
}
EXPORT int amdsmi_get_gpu_vram_usage(void* device, uint32_t* out) {
  (void)device;
  out[0] = 64 << 10;
  out[1] = 40 << 10;
  return 0;
}
