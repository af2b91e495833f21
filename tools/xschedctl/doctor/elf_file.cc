#include "tools/xschedctl/doctor/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

namespace xschedd::ctl {
namespace {

// The file may be hostile: of any size, with records that all refer to each other. These limits are far above what any
// library has.
constexpr std::size_t kMaxBytes = std::size_t{512} << 20;
constexpr std::uint64_t kMaxReads = 8'000'000;
constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxNameBytes = 4096;

class Content {
 public:
  explicit Content(std::string bytes) : bytes_(std::move(bytes)) {}

  template <typename Type>
  bool Read(std::uint64_t offset, Type* out) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(Type) || reads_left_ == 0) return false;
    --reads_left_;
    std::memcpy(out, bytes_.data() + offset, sizeof(Type));
    return true;
  }
  std::string TextAt(std::uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    const std::size_t most = std::min({bytes_.size() - offset, kMaxNameBytes, text_left_});
    const auto* const end = static_cast<const char*>(std::memchr(bytes_.data() + offset, '\0', most));
    if (end == nullptr) return {};
    std::string text(bytes_.data() + offset, end);
    text_left_ -= text.size();
    return text;
  }

 private:
  std::string bytes_;
  mutable std::uint64_t reads_left_ = kMaxReads;
  mutable std::size_t text_left_ = kMaxTextBytes;
};

void Raise(std::optional<GlibcVersion>* highest, const std::string& name) {
  GlibcVersion version{0, 0};
  if (std::sscanf(name.c_str(), "GLIBC_%d.%d", &version.first, &version.second) != 2) return;
  if (!*highest || **highest < version) *highest = version;
}

void ReadImports(const Content& file, const Elf64_Shdr& symbols, const Elf64_Shdr& names, ElfFile* out) {
  for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols.sh_size; at += sizeof(Elf64_Sym)) {
    Elf64_Sym symbol;
    if (!file.Read(symbols.sh_offset + at, &symbol)) return;
    if (symbol.st_shndx == SHN_UNDEF && symbol.st_name != 0) {
      out->imports.push_back(file.TextAt(names.sh_offset + symbol.st_name));
    }
  }
}

// Linked lists: each record has the distance to the next; 0 ends a list.
void ReadNeeded(const Content& file, const Elf64_Shdr& section, const Elf64_Shdr& names, ElfFile* out) {
  Elf64_Verneed need;
  for (std::uint64_t at = section.sh_offset; file.Read(at, &need); at += need.vn_next) {
    Elf64_Vernaux one;
    for (std::uint64_t part = at + need.vn_aux; file.Read(part, &one); part += one.vna_next) {
      Raise(&out->needs, file.TextAt(names.sh_offset + one.vna_name));
      if (one.vna_next == 0) break;
    }
    if (need.vn_next == 0) break;
  }
}

void ReadDefined(const Content& file, const Elf64_Shdr& section, const Elf64_Shdr& names, ElfFile* out) {
  Elf64_Verdef definition;
  for (std::uint64_t at = section.sh_offset; file.Read(at, &definition); at += definition.vd_next) {
    Elf64_Verdaux name;
    if (file.Read(at + definition.vd_aux, &name)) Raise(&out->defines, file.TextAt(names.sh_offset + name.vda_name));
    if (definition.vd_next == 0) break;
  }
}

}  // namespace

std::optional<ElfFile> ReadElf(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string bytes;
  char buffer[65536];
  while (bytes.size() < kMaxBytes && (stream.read(buffer, sizeof buffer), stream.gcount() > 0))
    bytes.append(buffer, static_cast<std::size_t>(stream.gcount()));
  return ParseElf(std::move(bytes));
}

std::optional<ElfFile> ParseElf(std::string bytes) {
  const Content file(std::move(bytes));
  Elf64_Ehdr header;
  if (!file.Read(0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return std::nullopt;
  }
  ElfFile out;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (file.Read(header.e_phoff + std::uint64_t{i} * sizeof segment, &segment) && segment.p_type == PT_INTERP) {
      out.has_interpreter = true;
    }
  }
  const auto section_at = [&](unsigned index, Elf64_Shdr* section) {
    return index < header.e_shnum && file.Read(header.e_shoff + std::uint64_t{index} * sizeof *section, section);
  };
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    Elf64_Shdr names;
    if (!section_at(i, &section) || !section_at(section.sh_link, &names)) continue;
    if (section.sh_type == SHT_DYNSYM) ReadImports(file, section, names, &out);
    if (section.sh_type == SHT_GNU_verneed) ReadNeeded(file, section, names, &out);
    if (section.sh_type == SHT_GNU_verdef) ReadDefined(file, section, names, &out);
  }
  return out;
}

}  // namespace xschedd::ctl
