// HSA functions of newer ROCm versions that have no effect here and succeed: scratch memory is not modelled, logging
// goes nowhere, and no system event (a memory fault, a hung device) ever happens. Thread rule: any thread.
#include <hsa/hsa.h>

#include "tools/softgpu/hsa/runtime.h"

SOFTGPU_API hsa_status_t hsa_amd_agent_set_async_scratch_limit(hsa_agent_t, size_t) {
  return HSA_STATUS_SUCCESS;
}
SOFTGPU_API hsa_status_t hsa_amd_enable_logging(uint8_t*, void*) {
  return HSA_STATUS_SUCCESS;
}
SOFTGPU_API hsa_status_t hsa_amd_register_system_event_handler(hsa_amd_system_event_callback_t, void*) {
  return HSA_STATUS_SUCCESS;
}
