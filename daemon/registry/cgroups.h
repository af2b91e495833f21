// Which cgroup a process is in, by what cannot be used again: the inodes of the directories of its path. A cgroup that
// is made anew under an old name has another one (kernfs gives none out twice), and a directory that has processes in
// it or below it cannot be removed. One hierarchy counts. Thread rule: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace xschedd {

// The hierarchy in which the host keeps its services and containers: systemd's own where there are hierarchies of
// version 1 (RHEL 8, Ubuntu 20.04), since container engines make no cgroups in a unified one beside them; else the
// unified one.
struct CgroupHierarchy {
  std::string root;         // where it is mounted; empty: there is none
  std::string controllers;  // the second field of its line in /proc/PID/cgroup; empty: the unified one's
};
// Of the text of /proc/self/mounts.
CgroupHierarchy HierarchyOf(std::string_view mounts);
// The host's, found once.
const CgroupHierarchy& HostHierarchy();

// The inode of the directory of the cgroup with this path, as /proc/PID/cgroup has it; none: there is no such cgroup.
// kUnknownInode: it cannot be looked at now.
using CgroupInodeOf = std::function<std::optional<std::uint64_t>(const std::string& path)>;
inline constexpr std::uint64_t kUnknownInode = 0;

// The host's; where it has no hierarchy, there is no cgroup.
CgroupInodeOf SystemCgroups();
// The same for a hierarchy that is mounted at `root`.
CgroupInodeOf CgroupsAt(std::string root);

// By the depth of each: "/a/b" has those of "/a" and of "/a/b". Empty: the root, or no path.
using CgroupLineage = std::vector<std::uint64_t>;
CgroupLineage LineageOf(const std::string& path, const CgroupInodeOf& inode_of);

// How many cgroups the path names: "/a/b" two, "/" none.
std::size_t CgroupDepth(std::string_view path);

// Of the text of /proc/<pid>/cgroup: the path in this hierarchy, where the kernel's whole line is there.
std::optional<std::string> CgroupIn(const CgroupHierarchy& hierarchy, std::string_view text);

}  // namespace xschedd
