// The code object loader with invalid input: it reports errors, and touches nothing outside the file or its own memory.
#include <elf.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "tests/catch.h"
#include "tools/softgpu/hsa/code_object.h"

using softgpu::LoadedCode;

namespace {

constexpr uint64_t kDescriptorAt = 0x400;
constexpr uint64_t kSegmentEnd = 0x500;  // nothing behind it is read

// A small code object: one segment, one kernel "k" with descriptor {lds 16, scratch 32, kernarg 24}, one variable.
std::vector<unsigned char> code_object() {
  std::vector<unsigned char> file(0x600);
  const auto put = [&](uint64_t offset, const auto& value) { std::memcpy(file.data() + offset, &value, sizeof value); };
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = 224;
  header.e_phoff = sizeof header;
  header.e_phnum = 1;
  header.e_shoff = 0x100;
  header.e_shnum = 3;
  put(0, header);
  Elf64_Phdr segment{};
  segment.p_type = PT_LOAD;
  segment.p_offset = 0x400;
  segment.p_vaddr = 0x1400;
  segment.p_filesz = 0x100;
  segment.p_memsz = 0x200;
  put(header.e_phoff, segment);
  Elf64_Shdr symbols{};
  symbols.sh_type = SHT_DYNSYM;
  symbols.sh_offset = 0x200;
  symbols.sh_size = 2 * sizeof(Elf64_Sym);
  symbols.sh_link = 1;
  Elf64_Shdr names{};
  names.sh_type = SHT_STRTAB;
  names.sh_offset = 0x300;
  names.sh_size = 0x20;
  Elf64_Shdr relocations{};
  relocations.sh_type = SHT_RELA;
  relocations.sh_offset = 0x340;
  relocations.sh_size = sizeof(Elf64_Rela);
  put(0x100, symbols);
  put(0x100 + sizeof symbols, names);
  put(0x100 + 2 * sizeof symbols, relocations);
  std::memcpy(file.data() + 0x300, "\0k.kd\0v\0", 8);
  const Elf64_Sym kernel{1, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, 1, 0x1400, 64};
  const Elf64_Sym variable{6, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, 1, 0x1480, 8};
  put(0x200, kernel);
  put(0x200 + sizeof kernel, variable);
  put(0x340, Elf64_Rela{0x1480, ELF64_R_INFO(0, 13), 0x1400});  // v = address of k.kd
  const uint32_t descriptor[3] = {16, 32, 24};
  put(kDescriptorAt, descriptor);
  return file;
}

std::string load(const std::vector<unsigned char>& file, LoadedCode& loaded) {
  const auto allocate = [](uint64_t size) -> void* { return size < 1u << 20 ? std::calloc(1, size) : nullptr; };
  return softgpu::load_code_object(file, allocate, {}, loaded);
}

}  // namespace

TEST_CASE("a good code object is loaded, relocated and listed") {
  LoadedCode loaded;
  REQUIRE(load(code_object(), loaded).empty());
  REQUIRE(loaded.symbols.size() == 2);
  CHECK(loaded.symbols[0].name == "k.kd");
  CHECK(loaded.symbols[0].is_kernel);
  CHECK(loaded.symbols[0].group_segment_size == 16);
  CHECK(loaded.symbols[0].private_segment_size == 32);
  CHECK(loaded.symbols[0].kernarg_size == 24);
  CHECK(loaded.symbols[1].name == "v");
  uint64_t value = 0;
  const uint64_t at = loaded.symbols[1].address - reinterpret_cast<uintptr_t>(loaded.memory);
  std::memcpy(&value, static_cast<const char*>(loaded.memory) + at, sizeof value);
  CHECK(value == loaded.symbols[0].address);
  std::free(loaded.memory);
}

TEST_CASE("a file that is no code object is refused") {
  LoadedCode loaded;
  CHECK_FALSE(load({}, loaded).empty());
  CHECK_FALSE(load(std::vector<unsigned char>(4096, 0x7f), loaded).empty());
}

TEST_CASE("every truncation and many corruptions give a result or an error") {
  const std::vector<unsigned char> good = code_object();
  for (size_t size = 0; size < kSegmentEnd; size += 7) {
    LoadedCode loaded;
    CHECK_FALSE(load({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}, loaded).empty());
    std::free(loaded.memory);
  }
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<unsigned char> bad = good;
    for (int n = 0; n < 4; ++n)
      bad[random() % 0x400] = static_cast<unsigned char>(random());
    LoadedCode loaded;
    load(bad, loaded);
    std::free(loaded.memory);
  }
}
