#include "tools/softgpu/hsa/code_object.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace softgpu {

namespace {

// Relocation types of the AMDGPU ELF ABI (LLVM's AMDGPUUsage) that a finished code object may have.
constexpr uint32_t kAbs32Low = 1;
constexpr uint32_t kAbs32High = 2;
constexpr uint32_t kAbs64 = 3;
constexpr uint32_t kRelative64 = 13;

constexpr uint64_t kDescriptorSize = 64;
constexpr uint16_t kMachineAmdGpu = 224;

class Loader {
 public:
  Loader(std::span<const unsigned char> elf, const External& external, LoadedCode& loaded)
      : elf_(elf), external_(external), loaded_(loaded) {}

  std::string run(const Allocate& allocate) {
    Elf64_Ehdr header;
    if (!read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "not an ELF file";
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachineAmdGpu) {
      return "not a 64-bit AMDGPU code object";
    }
    std::vector<Elf64_Phdr> segments(header.e_phnum);
    for (size_t i = 0; i < segments.size(); ++i) {
      if (!read(header.e_phoff + i * sizeof(Elf64_Phdr), segments[i])) return "program headers lie outside the file";
    }
    if (std::string error = place(segments, allocate); !error.empty()) return error;
    for (uint16_t i = 0; i < header.e_shnum; ++i) {
      Elf64_Shdr section;
      if (!read(header.e_shoff + i * sizeof section, section)) return "section headers lie outside the file";
      if (section.sh_type == SHT_DYNSYM) {
        if (std::string error = symbols(header, section); !error.empty()) return error;
      }
    }
    for (uint16_t i = 0; i < header.e_shnum; ++i) {
      Elf64_Shdr section;
      if (read(header.e_shoff + i * sizeof section, section) && section.sh_type == SHT_RELA) {
        if (std::string error = relocate(section); !error.empty()) return error;
      }
    }
    return "";
  }

 private:
  template <typename T>
  bool read(uint64_t offset, T& value) const {
    if (offset > elf_.size() || elf_.size() - offset < sizeof value) return false;
    std::memcpy(&value, elf_.data() + offset, sizeof value);
    return true;
  }

  std::string text(uint64_t offset, uint64_t end) const {
    end = std::min<uint64_t>(end, elf_.size());
    std::string s;
    for (; offset < end && elf_[offset] != 0; ++offset)
      s += static_cast<char>(elf_[offset]);
    return s;
  }

  std::string place(const std::vector<Elf64_Phdr>& segments, const Allocate& allocate) {
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    for (const Elf64_Phdr& s : segments) {
      if (s.p_type != PT_LOAD) continue;
      const bool inside = s.p_offset <= elf_.size() && s.p_filesz <= elf_.size() - s.p_offset;
      if (!inside || s.p_filesz > s.p_memsz || s.p_vaddr + s.p_memsz < s.p_vaddr)
        return "a segment lies outside the file";
      low = std::min<uint64_t>(low, s.p_vaddr & ~uint64_t{4095});
      high = std::max<uint64_t>(high, s.p_vaddr + s.p_memsz);
    }
    if (high == 0) return "";
    loaded_.size = high - low;
    loaded_.memory = allocate(loaded_.size);
    if (loaded_.memory == nullptr) return "no device memory for it";
    loaded_.bias = reinterpret_cast<uint64_t>(loaded_.memory) - low;
    for (const Elf64_Phdr& s : segments) {
      if (s.p_type == PT_LOAD && s.p_filesz > 0) {
        std::memcpy(reinterpret_cast<void*>(loaded_.bias + s.p_vaddr), elf_.data() + s.p_offset, s.p_filesz);
      }
    }
    return "";
  }

  bool is_loaded(uint64_t address, uint64_t size) const {
    const auto base = reinterpret_cast<uint64_t>(loaded_.memory);
    return address >= base && size <= loaded_.size && address - base <= loaded_.size - size;
  }

  std::string symbols(const Elf64_Ehdr& header, const Elf64_Shdr& table) {
    Elf64_Shdr strings;
    if (!read(header.e_shoff + uint64_t{table.sh_link} * sizeof strings, strings))
      return "symbol names lie outside the file";
    for (uint64_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
      Elf64_Sym symbol;
      if (!read(table.sh_offset + i * sizeof symbol, symbol)) return "symbols lie outside the file";
      const std::string name = text(strings.sh_offset + symbol.st_name, strings.sh_offset + strings.sh_size);
      uint64_t address = 0;
      if (symbol.st_shndx != SHN_UNDEF) {
        address = loaded_.bias + symbol.st_value;
      } else if (const auto it = external_.find(name); it != external_.end()) {
        address = it->second;
      }
      addresses_.push_back(address);
      const unsigned type = ELF64_ST_TYPE(symbol.st_info);
      if (address != 0 && type == STT_OBJECT) add_symbol(name, address, symbol);
    }
    return "";
  }

  void add_symbol(const std::string& name, uint64_t address, const Elf64_Sym& elf_symbol) {
    CodeSymbol symbol{name, false, address, elf_symbol.st_size};
    symbol.is_kernel =
        name.size() > 3 && name.compare(name.size() - 3, 3, ".kd") == 0 && is_loaded(address, kDescriptorSize);
    if (symbol.is_kernel) {
      // amdhsa kernel descriptor: group segment, private segment and kernarg sizes are its first three words.
      uint32_t words[3];
      std::memcpy(words, reinterpret_cast<const void*>(address), sizeof words);
      symbol.group_segment_size = words[0];
      symbol.private_segment_size = words[1];
      symbol.kernarg_size = words[2];
    }
    loaded_.symbols.push_back(std::move(symbol));
  }

  std::string relocate(const Elf64_Shdr& section) {
    for (uint64_t i = 0; i < section.sh_size / sizeof(Elf64_Rela); ++i) {
      Elf64_Rela r;
      if (!read(section.sh_offset + i * sizeof r, r)) return "relocations lie outside the file";
      const uint64_t index = ELF64_R_SYM(r.r_info);
      const uint64_t symbol = index < addresses_.size() ? addresses_[index] : 0;
      const uint64_t target = loaded_.bias + r.r_offset;
      const auto addend = static_cast<uint64_t>(r.r_addend);
      const uint32_t type = ELF64_R_TYPE(r.r_info);
      if (!is_loaded(target, type == kAbs32Low || type == kAbs32High ? 4 : 8))
        return "a relocation lies outside its segment";
      const uint64_t value = type == kRelative64 ? loaded_.bias + addend : symbol + addend;
      const uint32_t half = static_cast<uint32_t>(type == kAbs32High ? value >> 32 : value);
      switch (type) {
        case kAbs64:
        case kRelative64:
          std::memcpy(reinterpret_cast<void*>(target), &value, sizeof value);
          break;
        case kAbs32Low:
        case kAbs32High:
          std::memcpy(reinterpret_cast<void*>(target), &half, sizeof half);
          break;
        default:
          return "relocation type " + std::to_string(type) + " is not implemented";
      }
    }
    return "";
  }

  std::span<const unsigned char> elf_;
  const External& external_;
  LoadedCode& loaded_;
  std::vector<uint64_t> addresses_;  // of the dynamic symbols, by index
};

}  // namespace

std::string load_code_object(std::span<const unsigned char> elf, const Allocate& allocate, const External& external,
                             LoadedCode& loaded) {
  return Loader(elf, external, loaded).run(allocate);
}

}  // namespace softgpu
