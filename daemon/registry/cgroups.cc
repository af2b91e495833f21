#include "daemon/registry/cgroups.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <utility>

namespace xschedd {
namespace {

constexpr std::string_view kSystemd = "name=systemd";

// Removes the text up to the next `separator` (and the separator), or all of it, and returns it.
std::string_view Next(std::string_view& text, char separator) {
  const std::string_view taken = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), taken.size() + 1));
  return taken;
}

}  // namespace

CgroupHierarchy HierarchyOf(std::string_view mounts) {
  CgroupHierarchy found;
  while (!mounts.empty()) {
    std::string_view line = Next(mounts, '\n');
    std::array<std::string_view, 4> fields;  // device, place, type, options
    for (std::string_view& field : fields)
      field = Next(line, ' ');
    const auto& [device, place, type, options] = fields;
    if (type == "cgroup" && ("," + std::string(options) + ",").find(",name=systemd,") != std::string::npos) {
      return {std::string(place), std::string(kSystemd)};
    }
    if (type == "cgroup2" && found.root.empty()) found.root = place;
  }
  return found;
}

const CgroupHierarchy& HostHierarchy() {
  static const CgroupHierarchy host = [] {
    std::ifstream file("/proc/self/mounts");
    return HierarchyOf(std::string(std::istreambuf_iterator<char>(file), {}));
  }();
  return host;
}

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
  if (!HostHierarchy().root.empty()) return CgroupsAt(HostHierarchy().root);
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

std::optional<std::string> CgroupIn(const CgroupHierarchy& hierarchy, std::string_view text) {
  while (text.find('\n') != std::string_view::npos) {
    std::string_view path = Next(text, '\n');
    const bool is_unified = Next(path, ':') == "0";
    const std::string_view controllers = Next(path, ':');
    if (is_unified == hierarchy.controllers.empty() && controllers == hierarchy.controllers && path.starts_with('/')) {
      return std::string(path);
    }
  }
  return std::nullopt;
}

}  // namespace xschedd
