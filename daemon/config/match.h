// Matches executables, cgroups and containers for rules and selectors. Thread rule: pure functions.
#pragma once

#include <string_view>
#include <vector>

namespace xschedd {

// Compares the whole path if `wanted` has a slash, else the file name.
bool ExeMatches(std::string_view wanted, std::string_view exe);

// Whether `cgroup` is `wanted` or below it: "/a" is above "/a/b", not above "/ab".
bool CgroupMatches(std::string_view wanted, std::string_view cgroup);

// Whether `text` is a container id or its start: 12 to 64 hexadecimal digits.
bool IsContainerId(std::string_view text);

// The ids of the containers whose cgroups the path names, outermost first. Docker, Podman, containerd and CRI-O, with
// or without systemd, end a path component with the 64-digit id: ".../ID", ".../docker-ID.scope",
// ".../cri-containerd:ID".
std::vector<std::string_view> ContainersIn(std::string_view cgroup);

// Whether `cgroup` is, or is below, that of the container whose id starts with `wanted`. The outermost one counts,
// because a container names the cgroups below itself. Paths below user.slice never match, because users create cgroups
// of any name there (systemd-run --user, rootless engines).
bool ContainerMatches(std::string_view wanted, std::string_view cgroup);

// Whether the path is in user.slice or below a user's service manager, where users create cgroups of any name.
bool IsBelowUsers(std::string_view cgroup);

// Whether users choose the names of cgroups at and below this path, because it is below a user's service manager.
bool IsNamedByUsers(std::string_view cgroup);

}  // namespace xschedd
