// A code object as the software GPU loads it: ELF from the program, or from any file. Properties: nothing
// outside the file or its own memory is touched (the address sanitizer reports it); kernels lie in that memory.
#include "tests/fuzz/input.h"
#include "tools/softgpu/hsa/code_object.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace softgpu;
  const External external = {{"host_variable", 0x1000}};
  LoadedCode loaded;
  const auto allocate = [](uint64_t bytes) -> void* { return bytes < (1u << 20) ? std::calloc(1, bytes) : nullptr; };
  const std::string wrong = load_code_object({data, size}, allocate, external, loaded);
  const auto base = reinterpret_cast<uint64_t>(loaded.memory);
  for (const CodeSymbol& symbol : loaded.symbols) {
    if (symbol.is_kernel) FUZZ_CHECK(symbol.address >= base && symbol.address + 64 <= base + loaded.size);
  }
  FUZZ_CHECK(wrong.find('\n') == std::string::npos);
  std::free(loaded.memory);
  return 0;
}
