// Shared virtual memory: attributes of ordinary host memory (hipMallocManaged, hipMemAdvise) and prefetching. The GPU
// can access all host memory, so attributes are only stored, for whole ranges as they were set. Thread rule: any
// thread.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <map>
#include <mutex>

#include "tools/softgpu/hsa/copy_engine.h"
#include "tools/softgpu/hsa/runtime.h"

namespace softgpu {

namespace {

struct SvmRanges {
  std::mutex lock;
  std::map<uintptr_t, std::map<uint64_t, uint64_t>> attributes;  // by start of the range
};

SvmRanges& svm_ranges() {
  static auto* r = new SvmRanges;  // leaked, see runtime.h
  return *r;
}

// Attributes that say how an agent may reach a range, which are keyed by the agent.
bool is_access(uint64_t attribute) {
  return attribute == HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE ||
         attribute == HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE || attribute == HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS;
}

}  // namespace

SOFTGPU_API hsa_status_t hsa_amd_svm_attributes_set(void* memory, size_t, hsa_amd_svm_attribute_pair_t* list,
                                                    size_t count) {
  SvmRanges& r = svm_ranges();
  const std::lock_guard guard(r.lock);
  auto& range = r.attributes[reinterpret_cast<uintptr_t>(memory)];
  for (size_t i = 0; i < count; ++i) {
    if (is_access(list[i].attribute)) {
      range[list[i].value] = list[i].attribute;  // an agent's handle is an address, never as small as an attribute
    } else {
      range[list[i].attribute] = list[i].value;
    }
  }
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_svm_attributes_get(void* memory, size_t, hsa_amd_svm_attribute_pair_t* list,
                                                    size_t count) {
  SvmRanges& r = svm_ranges();
  const std::lock_guard guard(r.lock);
  const auto& range = r.attributes[reinterpret_cast<uintptr_t>(memory)];
  for (size_t i = 0; i < count; ++i) {
    if (list[i].attribute == HSA_AMD_SVM_ATTRIB_ACCESS_QUERY) {
      const auto it = range.find(list[i].value);
      list[i].attribute = it != range.end() ? it->second : static_cast<uint64_t>(HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE);
    } else {
      const auto it = range.find(list[i].attribute);
      list[i].value = it != range.end() ? it->second : 0;
    }
  }
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_amd_svm_prefetch_async(void* memory, size_t size, hsa_agent_t agent, uint32_t dependencies,
                                                    const hsa_signal_t* dependency, hsa_signal_t completion) {
  Runtime* rt = runtime();
  if (rt == nullptr) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  Agent* to = rt->agent(agent);
  if (to == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  {
    SvmRanges& r = svm_ranges();
    const std::lock_guard guard(r.lock);
    r.attributes[reinterpret_cast<uintptr_t>(memory)][HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION] = agent.handle;
  }
  std::vector<hsa_signal_t> wait_for;
  if (dependencies > 0) wait_for.assign(dependency, dependency + dependencies);
  submit_copy(*to, to->is_gpu() ? rt->cpu() : *rt->agents.back(),
              {"prefetch", size, CopyPath::kHostToDevice, std::move(wait_for), completion, [] {}});
  return HSA_STATUS_SUCCESS;
}

}  // namespace softgpu
