// Gives a fuzz target the inputs that are kept in the tree, in the plain build: `replay FOLDER-OR-FILE...`.
// Fails if there are none: a folder that moved must not look like one without mistakes.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/input.h"

namespace {

// The file is closed again: some targets count what is open.
std::vector<char> Content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Replay(const std::filesystem::path& path, int* count) {
  const std::vector<char> content = Content(path);
  std::fprintf(stderr, "%s\n", path.c_str());  // the last one named is the one that fails
  // Exactly as large as the input, so that a checker sees a step beyond its end.
  const std::vector<std::uint8_t> bytes(content.begin(), content.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  ++*count;
}

}  // namespace

int main(int argc, char** argv) {
  int count = 0;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      if (std::filesystem::exists(argv[i])) Replay(argv[i], &count);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      if (entry.is_regular_file()) Replay(entry.path(), &count);
    }
  }
  LLVMFuzzerTestOneInput(nullptr, 0);
  std::printf("%d inputs\n", count);
  return count > 0 ? 0 : 1;
}
