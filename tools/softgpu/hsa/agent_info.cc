// Agents and their properties: a CPU, and the GPUs with the properties of an MI308X as far as they are known, under a
// name that says what they are. Thread rule: any thread.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <hsa/hsa_ext_image.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "tools/softgpu/hsa/answer.h"
#include "tools/softgpu/hsa/newer_hsa.h"
#include "tools/softgpu/hsa/runtime.h"
#include "tools/softgpu/model/clock.h"

namespace softgpu {

namespace {

constexpr uint32_t kXccs = 4;  // an MI308X has 4 accelerator dies of 20 compute units
constexpr uint64_t kClockHz = 1'000'000'000;

hsa_status_t answer_text(void* value, const char* text) {  // a field of 64 characters
  char field[64] = {};
  std::snprintf(field, sizeof field, "%s", text);
  std::memcpy(value, field, sizeof field);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t uuid(const Agent& agent, void* value) {
  char text[21] = {};
  if (agent.is_gpu()) {
    device_uuid(runtime()->settings.pci, agent.ordinal).copy(text, sizeof text - 1);
  } else {
    std::snprintf(text, sizeof text, "CPU-XX");
  }
  std::memcpy(value, text, sizeof text);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t common_info(const Agent& agent, int attribute, void* value) {
  switch (attribute) {
    case HSA_AGENT_INFO_NAME:
      return answer_text(value, agent.is_gpu() ? runtime()->settings.isa.c_str() : "xschedd host CPU");
    case HSA_AGENT_INFO_VENDOR_NAME:
      return answer_text(value, agent.is_gpu() ? "xschedd" : "CPU");
    case HSA_AMD_AGENT_INFO_PRODUCT_NAME:
      return answer_text(value, agent.is_gpu() ? "xschedd software GPU (MI308X model)" : "xschedd host CPU");
    case HSA_AGENT_INFO_FEATURE:
      return answer(value, agent.is_gpu() ? HSA_AGENT_FEATURE_KERNEL_DISPATCH : hsa_agent_feature_t{});
    case HSA_AGENT_INFO_MACHINE_MODEL:
      return answer(value, HSA_MACHINE_MODEL_LARGE);
    case HSA_AGENT_INFO_PROFILE:
      return answer(value, agent.is_gpu() ? HSA_PROFILE_BASE : HSA_PROFILE_FULL);
    case HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE:
      return answer(value, HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR);
    case HSA_AGENT_INFO_NODE:
    case HSA_AMD_AGENT_INFO_DRIVER_NODE_ID:
      return answer(value, agent.is_gpu() ? 1 + agent.ordinal : 0);
    case HSA_AGENT_INFO_DEVICE:
      return answer(value, agent.type);
    case HSA_AGENT_INFO_VERSION_MAJOR:
    case HSA_AGENT_INFO_VERSION_MINOR:
      return answer(value, uint16_t{1});
    case HSA_AGENT_INFO_EXTENSIONS:
      // The HIP runtime requires images for pitched memory, the only part of them that works here.
      std::memset(value, 0, 128);
      if (agent.is_gpu()) static_cast<unsigned char*>(value)[0] = 1u << HSA_EXTENSION_IMAGES;
      return HSA_STATUS_SUCCESS;
    case HSA_AMD_AGENT_INFO_UUID:
      return uuid(agent, value);
    case HSA_AMD_AGENT_INFO_BDFID:
      return answer(value, bdf_id(agent.pci));
    case HSA_AMD_AGENT_INFO_DOMAIN:
      return answer(value, agent.pci.domain);
    case HSA_AMD_AGENT_INFO_CACHELINE_SIZE:
      return answer(value, agent.is_gpu() ? uint32_t{128} : uint32_t{64});
    case HSA_AMD_AGENT_INFO_HDP_FLUSH:
      return answer(value, hsa_amd_hdp_flush_t{});
    case kAgentInfoNearestCpu:
      return answer(value, runtime()->cpu().handle());
    case kAgentInfoTimestampFrequency:
      return answer(value, kClockHz);
    case kAgentInfoDriverUid:
      return answer(value, uint32_t{0});
    case kAgentInfoClockCounters: {
      const uint64_t now = now_ns();
      return answer(value, std::array<uint64_t, 4>{now, now, now, kClockHz});  // GPU, CPU, system, frequency
    }
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}

hsa_status_t gpu_info(const Agent& agent, int attribute, void* value) {
  Runtime& rt = *runtime();
  switch (attribute) {
    case HSA_AGENT_INFO_WAVEFRONT_SIZE:
      return answer(value, uint32_t{64});
    case HSA_AGENT_INFO_WORKGROUP_MAX_DIM:
      return answer(value, std::array<uint16_t, 3>{1024, 1024, 1024});
    case HSA_AGENT_INFO_WORKGROUP_MAX_SIZE:
      return answer(value, uint32_t{1024});
    case HSA_AGENT_INFO_GRID_MAX_DIM:
      return answer(value, hsa_dim3_t{UINT32_MAX, UINT32_MAX, UINT32_MAX});
    case HSA_AGENT_INFO_GRID_MAX_SIZE:
      return answer(value, UINT32_MAX);
    case HSA_AGENT_INFO_FBARRIER_MAX_SIZE:
      return answer(value, uint32_t{32});
    case HSA_AGENT_INFO_QUEUES_MAX:
      return answer(value, uint32_t{128});
    case HSA_AGENT_INFO_QUEUE_MIN_SIZE:
      return answer(value, uint32_t{64});
    case HSA_AGENT_INFO_QUEUE_MAX_SIZE:
      return answer(value, uint32_t{131'072});
    case HSA_AGENT_INFO_QUEUE_TYPE:
      return answer(value, HSA_QUEUE_TYPE_MULTI);
    case HSA_AGENT_INFO_CACHE_SIZE:
      return answer(value, std::array<uint32_t, 4>{32u << 10, 4u << 20, 256u << 20, 0});
    case HSA_AGENT_INFO_ISA:
      return answer(value, hsa_isa_t{agent.handle().handle});
    case HSA_AGENT_INFO_FAST_F16_OPERATION:
      return answer(value, true);
    case HSA_EXT_AGENT_INFO_IMAGE_1D_MAX_ELEMENTS:
    case HSA_EXT_AGENT_INFO_IMAGE_1DA_MAX_ELEMENTS:
    case HSA_EXT_AGENT_INFO_IMAGE_1DB_MAX_ELEMENTS:
      return answer(value, uint32_t{16'384});
    case HSA_EXT_AGENT_INFO_IMAGE_2D_MAX_ELEMENTS:
    case HSA_EXT_AGENT_INFO_IMAGE_2DA_MAX_ELEMENTS:
      return answer(value, std::array<uint32_t, 2>{16'384, 16'384});
    case HSA_EXT_AGENT_INFO_IMAGE_3D_MAX_ELEMENTS:
      return answer(value, std::array<uint32_t, 3>{2'048, 2'048, 2'048});
    case HSA_EXT_AGENT_INFO_IMAGE_ARRAY_MAX_LAYERS:
      return answer(value, uint32_t{2'048});
    case HSA_EXT_AGENT_INFO_MAX_IMAGE_RD_HANDLES:
    case HSA_EXT_AGENT_INFO_MAX_IMAGE_RORW_HANDLES:
    case HSA_EXT_AGENT_INFO_MAX_SAMPLER_HANDLERS:
      return answer(value, uint32_t{16});
    case HSA_EXT_AGENT_INFO_IMAGE_LINEAR_ROW_PITCH_ALIGNMENT:
      return answer(value, size_t{256});
    case HSA_AMD_AGENT_INFO_CHIP_ID:
      return answer(value, uint32_t{0x74a2});
    case HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT:
    case HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT:
      return answer(value, rt.settings.compute_units);
    case HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY:
      return answer(value, uint32_t{2100});
    case HSA_AMD_AGENT_INFO_MAX_ADDRESS_WATCH_POINTS:
      return answer(value, uint32_t{4});
    case HSA_AMD_AGENT_INFO_MEMORY_WIDTH:
      return answer(value, uint32_t{8192});
    case HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY:
      return answer(value, uint32_t{1300});
    case HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU:
      return answer(value, uint32_t{32});
    case HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU:
      return answer(value, uint32_t{4});
    case HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES:
      return answer(value, uint32_t{16});
    case HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE:
    case HSA_AMD_AGENT_INFO_ASIC_REVISION:
      return answer(value, uint32_t{1});
    case HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES:
    case HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS:
      return answer(value, true);
    case kAgentInfoMemoryAvail: {
      const uint64_t used = rt.region.vram_in_use(agent.ordinal);
      const uint64_t total = rt.settings.vram_mb << 20;
      return answer(value, total > used ? total - used : uint64_t{0});
    }
    case kAgentInfoAsicFamilyId:
      return answer(value, uint32_t{143});
    case kAgentInfoNumSdmaEngines:
      return answer(value, kCopyEngines);
    case kAgentInfoUcodeVersion:
    case kAgentInfoSdmaUcodeVersion:
    case kAgentInfoNumSdmaXgmiEngines:
    case kAgentInfoIommuSupport:
      return answer(value, uint32_t{0});
    case kAgentInfoNumXcc:
      return answer(value, kXccs);
    case kAgentInfoMemoryProperties:
    case kAgentInfoAqlExtensions:
      std::memset(value, 0, 8);
      return HSA_STATUS_SUCCESS;
    case kAgentInfoScratchLimitMax:
    case kAgentInfoScratchLimitCurrent:
      return answer(value, uint64_t{4} << 30);
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}

hsa_status_t cpu_info(int attribute, void* value) {
  switch (attribute) {
    case HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT:
      return answer(value, static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN)));
    case HSA_AGENT_INFO_CACHE_SIZE:
      return answer(value, std::array<uint32_t, 4>{32u << 10, 1u << 20, 32u << 20, 0});
    case HSA_AGENT_INFO_QUEUES_MAX:
    case HSA_AGENT_INFO_WAVEFRONT_SIZE:
    case HSA_AMD_AGENT_INFO_CHIP_ID:
    case HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY:
      return answer(value, uint32_t{0});
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}

}  // namespace

SOFTGPU_API hsa_status_t hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t, void*), void* data) {
  Runtime* rt = runtime();
  if (rt == nullptr) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  for (auto& agent : rt->agents) {
    const hsa_status_t status = callback(agent->handle(), data);
    if (status != HSA_STATUS_SUCCESS) return status;
  }
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_agent_get_info(hsa_agent_t handle, hsa_agent_info_t attribute, void* value) {
  Runtime* rt = runtime();
  if (rt == nullptr) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  const Agent* agent = rt->agent(handle);
  if (agent == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  if (value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  const hsa_status_t status = common_info(*agent, attribute, value);
  if (status == HSA_STATUS_SUCCESS) return status;
  return agent->is_gpu() ? gpu_info(*agent, attribute, value) : cpu_info(attribute, value);
}

SOFTGPU_API hsa_status_t hsa_agent_extension_supported(uint16_t, hsa_agent_t, uint16_t, uint16_t, bool* supported) {
  if (supported == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  *supported = false;
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_agent_iterate_isas(hsa_agent_t handle, hsa_status_t (*callback)(hsa_isa_t, void*),
                                                void* data) {
  Runtime* rt = runtime();
  if (rt == nullptr) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  const Agent* agent = rt->agent(handle);
  if (agent == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  return agent->is_gpu() ? callback({handle.handle}, data) : HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_isa_get_info_alt(hsa_isa_t, hsa_isa_info_t attribute, void* value) {
  Runtime* rt = runtime();
  if (rt == nullptr) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  const std::string& name = rt->isa_name;
  switch (attribute) {
    case HSA_ISA_INFO_NAME_LENGTH:
      return answer(value, static_cast<uint32_t>(name.size() + 1));
    case HSA_ISA_INFO_NAME:
      std::memcpy(value, name.c_str(), name.size() + 1);
      return HSA_STATUS_SUCCESS;
    case HSA_ISA_INFO_WORKGROUP_MAX_SIZE:
      return answer(value, uint32_t{1024});
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}

}  // namespace softgpu
