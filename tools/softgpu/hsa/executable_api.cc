// Executables, HSA's term for a set of loaded code objects. Thread rule: different executables from any threads; one
// executable from one thread until it is frozen, then from any.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <hsa/hsa_ven_amd_loader.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>

#include "tools/softgpu/hsa/answer.h"
#include "tools/softgpu/hsa/blit.h"
#include "tools/softgpu/hsa/code_object.h"
#include "tools/softgpu/hsa/kernel_registry.h"
#include "tools/softgpu/hsa/memory.h"
#include "tools/softgpu/hsa/runtime.h"

namespace softgpu {

namespace {

struct Reader {
  std::span<const unsigned char> elf;
};

struct LoadedObject {
  Agent* agent;
  LoadedCode code;
};

struct Symbol {
  CodeSymbol code;
  Agent* agent;
};

struct Executable {
  std::vector<std::unique_ptr<LoadedObject>> objects;
  std::vector<std::unique_ptr<Symbol>> symbols;
  External external;
  bool frozen = false;
};

template <typename T, typename Handle>
T* from(Handle handle) {
  return reinterpret_cast<T*>(handle.handle);
}

std::string without_suffix(const std::string& kernel_symbol) {
  return kernel_symbol.substr(0, kernel_symbol.size() - 3);
}

void add_symbols(Executable& executable, Agent& agent, const LoadedCode& code) {
  for (const CodeSymbol& symbol : code.symbols) {
    executable.symbols.push_back(std::make_unique<Symbol>(Symbol{symbol, &agent}));
    if (!symbol.is_kernel) continue;
    Kernel kernel;
    kernel.name = without_suffix(symbol.name);
    kernel.kernarg_size = symbol.kernarg_size;
    kernel.group_segment_size = symbol.group_segment_size;
    kernel.private_segment_size = symbol.private_segment_size;
    kernel.host = find_host_kernel(kernel.name);
    kernel.is_blit = is_blit_name(kernel.name);
    add_kernel(symbol.address, std::move(kernel));
  }
}

}  // namespace

SOFTGPU_API hsa_status_t hsa_code_object_reader_create_from_memory(const void* code, size_t size,
                                                                   hsa_code_object_reader_t* reader) {
  if (code == nullptr || size == 0 || reader == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  reader->handle = reinterpret_cast<uint64_t>(new Reader{{static_cast<const unsigned char*>(code), size}});
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_code_object_reader_destroy(hsa_code_object_reader_t reader) {
  delete from<Reader>(reader);
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_executable_create_alt(hsa_profile_t, hsa_default_float_rounding_mode_t, const char*,
                                                   hsa_executable_t* executable) {
  if (executable == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  executable->handle = reinterpret_cast<uint64_t>(new Executable);
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_executable_destroy(hsa_executable_t handle) {
  auto* executable = from<Executable>(handle);
  if (executable == nullptr) return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
  for (const auto& symbol : executable->symbols) {
    if (symbol->code.is_kernel) remove_kernel(symbol->code.address);
  }
  for (const auto& object : executable->objects) {
    if (object->code.memory != nullptr && !inert()) release(object->code.memory);
  }
  delete executable;
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_executable_agent_global_variable_define(hsa_executable_t handle, hsa_agent_t,
                                                                     const char* name, void* address) {
  auto* executable = from<Executable>(handle);
  if (executable == nullptr || name == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  executable->external[name] = reinterpret_cast<uint64_t>(address);
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_executable_load_agent_code_object(hsa_executable_t handle, hsa_agent_t agent_handle,
                                                               hsa_code_object_reader_t reader, const char*,
                                                               hsa_loaded_code_object_t* loaded) {
  Runtime* rt = runtime();
  if (rt == nullptr) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  auto* executable = from<Executable>(handle);
  Agent* agent = rt->agent(agent_handle);
  if (executable == nullptr || agent == nullptr || !agent->is_gpu()) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  auto object = std::make_unique<LoadedObject>(LoadedObject{agent, {}});
  const std::string error = load_code_object(
      from<Reader>(reader)->elf, [&](uint64_t size) { return allocate(*agent->pools[0], size); }, executable->external,
      object->code);
  if (!error.empty()) {
    std::fprintf(stderr, "softgpu: code object not loaded: %s\n", error.c_str());
    return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
  }
  add_symbols(*executable, *agent, object->code);
  if (loaded != nullptr) loaded->handle = reinterpret_cast<uint64_t>(object.get());
  executable->objects.push_back(std::move(object));
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_executable_freeze(hsa_executable_t handle, const char*) {
  from<Executable>(handle)->frozen = true;
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_executable_get_symbol_by_name(hsa_executable_t handle, const char* name,
                                                           const hsa_agent_t* agent, hsa_executable_symbol_t* symbol) {
  auto* executable = from<Executable>(handle);
  if (executable == nullptr || name == nullptr || symbol == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  for (const auto& s : executable->symbols) {
    if (s->code.name == name && (agent == nullptr || s->agent->handle().handle == agent->handle)) {
      symbol->handle = reinterpret_cast<uint64_t>(s.get());
      return HSA_STATUS_SUCCESS;
    }
  }
  return HSA_STATUS_ERROR_INVALID_SYMBOL_NAME;
}

SOFTGPU_API hsa_status_t hsa_executable_iterate_symbols(
    hsa_executable_t handle, hsa_status_t (*callback)(hsa_executable_t, hsa_executable_symbol_t, void*), void* data) {
  for (const auto& s : from<Executable>(handle)->symbols) {
    const hsa_status_t status = callback(handle, {reinterpret_cast<uint64_t>(s.get())}, data);
    if (status != HSA_STATUS_SUCCESS) return status;
  }
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_executable_iterate_agent_symbols(hsa_executable_t handle, hsa_agent_t agent,
                                                              hsa_status_t (*callback)(hsa_executable_t, hsa_agent_t,
                                                                                       hsa_executable_symbol_t, void*),
                                                              void* data) {
  for (const auto& s : from<Executable>(handle)->symbols) {
    if (s->agent->handle().handle != agent.handle) continue;
    const hsa_status_t status = callback(handle, agent, {reinterpret_cast<uint64_t>(s.get())}, data);
    if (status != HSA_STATUS_SUCCESS) return status;
  }
  return HSA_STATUS_SUCCESS;
}

SOFTGPU_API hsa_status_t hsa_executable_symbol_get_info(hsa_executable_symbol_t handle,
                                                        hsa_executable_symbol_info_t attribute, void* value) {
  const auto* symbol = from<Symbol>(handle);
  if (symbol == nullptr || value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  const CodeSymbol& code = symbol->code;
  switch (attribute) {
    case HSA_EXECUTABLE_SYMBOL_INFO_TYPE:
      return answer(value, code.is_kernel ? HSA_SYMBOL_KIND_KERNEL : HSA_SYMBOL_KIND_VARIABLE);
    case HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH:
      return answer(value, static_cast<uint32_t>(code.name.size()));
    case HSA_EXECUTABLE_SYMBOL_INFO_NAME:
      std::memcpy(value, code.name.data(), code.name.size());
      return HSA_STATUS_SUCCESS;
    case HSA_EXECUTABLE_SYMBOL_INFO_AGENT:
      return answer(value, symbol->agent->handle());
    case HSA_EXECUTABLE_SYMBOL_INFO_LINKAGE:
      return answer(value, HSA_SYMBOL_LINKAGE_PROGRAM);
    case HSA_EXECUTABLE_SYMBOL_INFO_IS_DEFINITION:
      return answer(value, true);
    case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS:
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT:
      return answer(value, code.address);
    case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE:
      return answer(value, static_cast<uint32_t>(code.size));
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE:
      return answer(value, code.kernarg_size);
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT:
      return answer(value, uint32_t{64});
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE:
      return answer(value, code.group_segment_size);
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE:
      return answer(value, code.private_segment_size);
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK:
      return answer(value, false);
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}

}  // namespace softgpu
