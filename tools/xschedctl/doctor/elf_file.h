// What an ELF file on disk says of itself, as far as the doctor asks: whether it is linked statically, what it imports,
// which glibc it needs or is. Every offset of the file is checked before it is followed. Thread rule: pure but for
// reading the file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/xschedctl/doctor/facts.h"

namespace xschedd::ctl {

struct ElfFile {
  bool has_interpreter = false;         // false in a program: it is linked statically
  std::vector<std::string> imports;     // undefined dynamic symbols
  std::optional<GlibcVersion> needs;    // the highest GLIBC_ that is asked for
  std::optional<GlibcVersion> defines;  // the highest GLIBC_ that it has: it is libc.so.6
};

// nullopt: not there, or no 64-bit little-endian ELF file.
std::optional<ElfFile> ReadElf(const std::string& path);
// The same of what the file holds.
std::optional<ElfFile> ParseElf(std::string content);

}  // namespace xschedd::ctl
