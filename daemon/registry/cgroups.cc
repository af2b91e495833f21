#include "daemon/registry/cgroups.h"

#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace xschedd {
namespace {

constexpr long kCgroup2Magic = 0x63677270;  // CGROUP2_SUPER_MAGIC, linux/magic.h
// Where systemd mounts it: alone, or beside the older hierarchies.
constexpr const char* kRoots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

}  // namespace

CgroupInodeOf CgroupsAt(std::string root) {
  return [root = std::move(root)](const std::string& path) -> std::optional<std::uint64_t> {
    struct stat status {};
    if (::lstat((root + path).c_str(), &status) != 0) {
      return errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG ? std::nullopt : std::optional(kUnknownInode);
    }
    return S_ISDIR(status.st_mode) ? std::optional<std::uint64_t>(status.st_ino) : std::nullopt;
  };
}

CgroupInodeOf SystemCgroups() {
  for (const char* root : kRoots) {
    struct statfs file_system {};
    if (::statfs(root, &file_system) == 0 && file_system.f_type == kCgroup2Magic) return CgroupsAt(root);
  }
  return [](const std::string&) { return std::nullopt; };
}

CgroupLineage LineageOf(const std::string& path, const CgroupInodeOf& inode_of) {
  CgroupLineage lineage;
  for (std::size_t end = 0; end < path.size() && path != "/";) {
    end = std::min(path.find('/', end + 1), path.size());
    lineage.push_back(inode_of(path.substr(0, end)).value_or(kUnknownInode));
  }
  return lineage;
}

std::size_t CgroupDepth(std::string_view path) {
  return path == "/" ? 0 : static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
}

std::optional<std::string> UnifiedCgroup(std::string_view text) {
  constexpr std::string_view kPrefix = "0::/";
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const std::string_view line = text.substr(0, end);
    if (line.starts_with(kPrefix)) return std::string(line.substr(kPrefix.size() - 1));
    text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

}  // namespace xschedd
