// AMDGPU code objects: ELF shared objects for the GPU. Loading one copies its segments into device memory, resolves its
// relocations, and lists its symbols: kernels (by their descriptors, "<name>.kd") and variables. The code is never run.
// Contract: the ELF bytes are input; every offset is checked before it is used. Thread rule: no shared state.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace softgpu {

struct CodeSymbol {
  std::string name;  // as in the code object, with ".kd" for kernels
  bool is_kernel;
  uint64_t address;
  uint64_t size;
  // Kernels: from the descriptor.
  uint32_t group_segment_size = 0;
  uint32_t private_segment_size = 0;
  uint32_t kernarg_size = 0;
};

struct LoadedCode {
  void* memory = nullptr;  // null: a code object without segments
  uint64_t size = 0;
  uint64_t bias = 0;  // address - virtual address in the file
  std::vector<CodeSymbol> symbols;
};

using Allocate = std::function<void*(uint64_t)>;
using External = std::map<std::string, uint64_t>;  // addresses of symbols defined by the program

// Returns an empty string, or what is wrong with the code object.
std::string load_code_object(std::span<const unsigned char> elf, const Allocate& allocate, const External& external,
                             LoadedCode& loaded);

}  // namespace softgpu
