// The whole text of a file, also of one in /proc, whose size is not known before. Thread rule: any thread.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace xschedd::ctl {

// Empty where it cannot be read; `is_readable` tells that from a file without text.
inline std::string FileText(const std::filesystem::path& path, bool* is_readable = nullptr) {
  std::ifstream file(path, std::ios::binary);
  if (is_readable != nullptr) *is_readable = file.is_open();
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace xschedd::ctl
