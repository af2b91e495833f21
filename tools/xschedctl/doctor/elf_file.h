// What the doctor needs to know of an ELF file: whether it is linked statically, what it imports, which glibc it needs
// or is. Every offset of the file is checked before it is followed. Thread rule: pure but for reading the file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/xschedctl/doctor/facts.h"

namespace xschedd::ctl {

struct ElfFile {
  bool has_interpreter = false;         // false in a program: it is linked statically
  std::vector<std::string> imports;     // undefined dynamic symbols
  std::optional<GlibcVersion> needs;    // the highest GLIBC_ version that it requires
  std::optional<GlibcVersion> defines;  // the highest GLIBC_ version that it defines: it is libc.so.6
};

// nullopt: no such file, or not a 64-bit little-endian ELF file.
std::optional<ElfFile> ReadElf(const std::string& path);
// The same from the file's content.
std::optional<ElfFile> ParseElf(std::string content);

}  // namespace xschedd::ctl
