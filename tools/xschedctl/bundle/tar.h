// Writes a POSIX archive (ustar), which every tar reads: regular files only, mode 0600, no owner. Thread rule: pure
// functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace xschedd::ctl {

struct TarEntry {
  std::string name;  // at most 100 bytes
  std::string text;  // less than 8 GiB
};

// `unix_s`: when the files were last changed, as the archive says.
std::string Tar(std::span<const TarEntry> entries, std::uint64_t unix_s);

}  // namespace xschedd::ctl
