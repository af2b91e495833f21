#include "tools/xschedctl/preload.h"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace xschedd::ctl {
namespace {

constexpr std::string_view kSeparators = ": ";  // as ld.so(8) has it

bool Names(std::string_view list, std::string_view path) {
  while (!list.empty()) {
    const std::size_t end = list.find_first_of(kSeparators);
    if (list.substr(0, end) == path) return true;
    if (end == std::string_view::npos) break;
    list.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace

std::string OwnPath() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

Result<std::string> ComposePreload(std::string_view shim, std::string_view existing) {
  if (shim.find_first_of(kSeparators) != std::string_view::npos) {
    return Fail("\"" + std::string(shim) + "\" cannot be preloaded: LD_PRELOAD takes a blank or colon as a separator",
                "copy the shim to a path without them and give --shim");
  }
  if (existing.empty()) return std::string(shim);
  if (Names(existing, shim)) return std::string(existing);
  return std::string(shim) + ":" + std::string(existing);
}

std::vector<std::string> ShimCandidates(std::string_view exe, std::string_view library_dir) {
  const std::filesystem::path here = std::filesystem::path(exe).parent_path();
  const std::filesystem::path library(library_dir);
  return {
      (here / "../../client-shim" / kShimName).lexically_normal().string(),
      (here / "../lib/xschedd" / kShimName).lexically_normal().string(),
      (library / "xschedd" / kShimName).string(),
      (library / kShimName).string(),
  };
}

Result<std::string> FindShim(const std::string& explicit_path, const std::vector<std::string>& candidates) {
  if (!explicit_path.empty()) {
    // Absolute, because the command may change its working directory before it starts another program.
    char* const resolved = realpath(explicit_path.c_str(), nullptr);
    if (resolved == nullptr) {
      return Fail("cannot find the shim " + explicit_path + ": " + std::strerror(errno),
                  "correct --shim or $" + std::string(kShimVariable));
    }
    std::string path = resolved;
    std::free(resolved);
    return path;
  }
  std::string looked_at;
  for (const std::string& candidate : candidates) {
    if (access(candidate.c_str(), R_OK) == 0) return candidate;
    looked_at += (looked_at.empty() ? "" : ", ") + candidate;
  }
  return Fail(std::string(kShimName) + " was not found (looked for " + looked_at + ")",
              "install xschedd's client, or give --shim PATH");
}

}  // namespace xschedd::ctl
