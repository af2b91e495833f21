// Which cgroup a process is in, by what cannot be used again: the inodes of the directories of its path. A cgroup that
// is made anew under an old name has another one (kernfs gives none out twice), and a directory that has processes in
// it or below it cannot be removed. Only the unified hierarchy counts. Thread rule: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace xschedd {

// The inode of the directory of the cgroup with this path, as /proc/PID/cgroup has it; none: there is no such cgroup.
// kUnknownInode: it cannot be looked at now.
using CgroupInodeOf = std::function<std::optional<std::uint64_t>(const std::string& path)>;
inline constexpr std::uint64_t kUnknownInode = 0;

// This machine's; where it has no unified hierarchy, there is no cgroup.
CgroupInodeOf SystemCgroups();
// The same for a hierarchy that is mounted at `root`.
CgroupInodeOf CgroupsAt(std::string root);

// By the depth of each: "/a/b" has those of "/a" and of "/a/b". Empty: the root, or no path.
using CgroupLineage = std::vector<std::uint64_t>;
CgroupLineage LineageOf(const std::string& path, const CgroupInodeOf& inode_of);

// How many cgroups the path names: "/a/b" two, "/" none.
std::size_t CgroupDepth(std::string_view path);

// Of the text of /proc/<pid>/cgroup: the unified hierarchy's path, where the kernel's whole line is there.
std::optional<std::string> UnifiedCgroup(std::string_view text);

}  // namespace xschedd
