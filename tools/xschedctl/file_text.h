// Reads a whole file, also in /proc, where the size is not known in advance. Thread rule: any thread.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace xschedd::ctl {

// Empty if it cannot be read; `is_readable` distinguishes that from an empty file.
inline std::string FileText(const std::filesystem::path& path, bool* is_readable = nullptr) {
  std::ifstream file(path, std::ios::binary);
  if (is_readable != nullptr) *is_readable = file.is_open();
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace xschedd::ctl
