// Which cgroup a process is in, identified by something that is never reused: the inodes of the directories on its
// path. A cgroup that is made again under an old name has another inode (kernfs never reuses one), and a directory with
// processes in or below it cannot be removed. Only one hierarchy counts. Thread rule: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace xschedd {

// The hierarchy in which the host keeps its services and containers. Where there are hierarchies of version 1 (RHEL 8,
// Ubuntu 20.04), it is systemd's own, since container engines make no cgroups in a unified hierarchy beside them;
// elsewhere it is the unified one.
struct CgroupHierarchy {
  std::string root;         // where it is mounted; empty: there is none
  std::string controllers;  // the second field of its line in /proc/PID/cgroup; empty for the unified one
};
// From the text of /proc/self/mounts.
CgroupHierarchy HierarchyOf(std::string_view mounts);
// The host's; looked up once.
const CgroupHierarchy& HostHierarchy();

// The inode of the directory of the cgroup with this path, written as in /proc/PID/cgroup; none: there is no such
// cgroup. kUnknownInode: it cannot be read now.
using CgroupInodeOf = std::function<std::optional<std::uint64_t>(const std::string& path)>;
inline constexpr std::uint64_t kUnknownInode = 0;

// For the host's hierarchy; a host without one has no cgroups.
CgroupInodeOf SystemCgroups();
// The same for a hierarchy that is mounted at `root`.
CgroupInodeOf CgroupsAt(std::string root);

// The inodes along a path, outermost first: "/a/b" has those of "/a" and of "/a/b". Empty: the root, or no path.
using CgroupLineage = std::vector<std::uint64_t>;
CgroupLineage LineageOf(const std::string& path, const CgroupInodeOf& inode_of);

// How many cgroups the path names: "/a/b" two, "/" none.
std::size_t CgroupDepth(std::string_view path);

// From the text of /proc/<pid>/cgroup: the path in this hierarchy; none: `text` does not have its whole line.
std::optional<std::string> CgroupIn(const CgroupHierarchy& hierarchy, std::string_view text);

}  // namespace xschedd
