// How an executable, a cgroup and a container are named by rules and selectors. Thread rule: pure functions.
#pragma once

#include <string_view>

namespace xschedd {

// `wanted` with a slash: the whole path; without: the file name.
bool ExeMatches(std::string_view wanted, std::string_view exe);

// `wanted` itself or one below it; "/a" is above "/a/b", not above "/ab".
bool CgroupMatches(std::string_view wanted, std::string_view cgroup);

// A container's id or its beginning: 12 to 64 hexadecimal digits.
bool IsContainerId(std::string_view text);

// Whether `cgroup` is that of the container whose id begins with `wanted`, or below it. Docker, Podman, containerd and
// CRI-O, under systemd or not, end a component of the path with the id of 64 digits: ".../ID", ".../docker-ID.scope",
// ".../cri-containerd:ID". The outermost is the container: what is below it, it names itself. No container is looked
// for below user.slice, where users make cgroups of any name (systemd-run --user, rootless engines).
bool ContainerMatches(std::string_view wanted, std::string_view cgroup);

// Whether users name the cgroups at and below this path themselves: it is below a user's own service manager.
bool IsNamedByUsers(std::string_view cgroup);

}  // namespace xschedd
