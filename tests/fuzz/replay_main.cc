// Gives a fuzz target the inputs that are kept in the tree, in the plain build: `replay PATH...`, each a file, a folder
// of files, or a corpus (*.tar, written by archive.py). Fails if a corpus is missing or cut short, or if there is no
// input at all: otherwise a moved corpus would look like a passed test.
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/input.h"

namespace {

// The file is closed again, because some targets count open descriptors.
std::vector<char> Content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Replay(const std::string& name, std::string_view content, int* count) {
  std::fprintf(stderr, "%s\n", name.c_str());  // the last one named is the one that fails
  // Exactly as large as the input, so that a sanitizer reports an access beyond its end.
  const std::vector<std::uint8_t> bytes(content.begin(), content.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  ++*count;
}

void ReplayFile(const std::filesystem::path& path, int* count) {
  const std::vector<char> content = Content(path);
  Replay(path.string(), {content.data(), content.size()}, count);
}

// ustar: a header of one block with name and size (octal), then the content, padded to whole blocks; a block of zeros
// ends it. False: the file is not a whole archive.
bool ReplayArchive(const std::filesystem::path& path, int* count) {
  constexpr std::size_t kBlock = 512, kNameLength = 100, kSizeAt = 124, kSizeLength = 11;
  const std::vector<char> all = Content(path);
  const std::string_view archive(all.data(), all.size());
  for (std::size_t at = 0; at + kBlock <= archive.size();) {
    const std::string_view header = archive.substr(at, kBlock);
    if (header[0] == '\0') return true;
    const std::string_view digits = header.substr(kSizeAt, kSizeLength);
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), size, 8);
    at += kBlock;
    if (error != std::errc() || end != digits.end() || size > archive.size() - at) return false;
    Replay(path.string() + ": " + std::string(header.substr(0, kNameLength).substr(0, header.find('\0'))),
           archive.substr(at, size), count);
    at += (size + kBlock - 1) / kBlock * kBlock;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  int count = 0;
  for (int i = 1; i < argc; ++i) {
    const std::filesystem::path path = argv[i];
    if (path.extension() == ".tar") {
      if (ReplayArchive(path, &count)) continue;
      std::fprintf(stderr, "%s: no corpus; tests/fuzz/archive.py writes them\n", argv[i]);
      return 1;
    }
    if (!std::filesystem::is_directory(path)) {
      if (std::filesystem::exists(path)) ReplayFile(path, &count);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.is_regular_file()) ReplayFile(entry.path(), &count);
    }
  }
  LLVMFuzzerTestOneInput(nullptr, 0);
  std::printf("%d inputs\n", count);
  return count > 0 ? 0 : 1;
}
