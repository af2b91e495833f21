// Properties of the system as a whole: version, clock, extensions, error texts. Thread rule: any thread.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <hsa/hsa_ven_amd_loader.h>

#include <algorithm>
#include <cstring>

#include "tools/softgpu/hsa/answer.h"
#include "tools/softgpu/hsa/newer_hsa.h"
#include "tools/softgpu/hsa/runtime.h"
#include "tools/softgpu/model/clock.h"

namespace softgpu {

namespace {

// Device and host share addresses.
hsa_status_t query_host_address(const void* device, const void** host) {
  *host = device;
  return HSA_STATUS_SUCCESS;
}

}  // namespace

SOFTGPU_API hsa_status_t hsa_system_get_info(hsa_system_info_t attribute, void* value) {
  if (runtime() == nullptr) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  if (value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  switch (static_cast<int>(attribute)) {
    case HSA_SYSTEM_INFO_VERSION_MAJOR:
    case HSA_SYSTEM_INFO_VERSION_MINOR:
      return answer(value, uint16_t{1});
    case HSA_SYSTEM_INFO_TIMESTAMP:
      return answer(value, now_ns());
    case HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY:
      return answer(value, uint64_t{1'000'000'000});
    case HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT:
      return answer(value, UINT64_MAX);
    case HSA_SYSTEM_INFO_ENDIANNESS:
      return answer(value, HSA_ENDIANNESS_LITTLE);
    case HSA_SYSTEM_INFO_MACHINE_MODEL:
      return answer(value, HSA_MACHINE_MODEL_LARGE);
    case HSA_SYSTEM_INFO_EXTENSIONS:
      std::memset(value, 0, 128);
      return HSA_STATUS_SUCCESS;
    case HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED:
    case kSystemInfoVirtualMemSupported:
      return answer(value, true);
    case HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT:
    case kSystemInfoMwaitxEnabled:
    case kSystemInfoDmabufSupported:
    case kSystemInfoXnackEnabled:
      return answer(value, false);
    case kSystemInfoExtVersionMajor:
    case kSystemInfoExtVersionMinor:
      return answer(value, uint16_t{1});
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}

SOFTGPU_API hsa_status_t hsa_system_extension_supported(uint16_t, uint16_t, uint16_t, bool* supported) {
  if (supported == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  *supported = false;
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_system_get_major_extension_table(uint16_t extension, uint16_t, size_t size, void* table) {
  if (extension != HSA_EXTENSION_AMD_LOADER) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  std::memset(table, 0, size);
  hsa_ven_amd_loader_1_00_pfn_t loader{};
  loader.hsa_ven_amd_loader_query_host_address = query_host_address;
  std::memcpy(table, &loader, std::min(size, sizeof loader));
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_status_string(hsa_status_t status, const char** text) {
  if (text == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  switch (status) {
    case HSA_STATUS_SUCCESS:
      *text = "HSA_STATUS_SUCCESS: no error";
      break;
    case HSA_STATUS_ERROR_OUT_OF_RESOURCES:
      *text = "HSA_STATUS_ERROR_OUT_OF_RESOURCES: the software GPU is out of the requested resource";
      break;
    case HSA_STATUS_ERROR_INVALID_CODE_OBJECT:
      *text = "HSA_STATUS_ERROR_INVALID_CODE_OBJECT: the code object cannot be loaded";
      break;
    case HSA_STATUS_ERROR_INVALID_PACKET_FORMAT:
      *text = "HSA_STATUS_ERROR_INVALID_PACKET_FORMAT: the packet cannot be read";
      break;
    default:
      *text = "an error of the software GPU";
  }
  return HSA_STATUS_SUCCESS;
}

}  // namespace softgpu
