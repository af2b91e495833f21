// Who a process is, as the kernel says: credentials of its socket, a pidfd, and /proc.
//
// Text from /proc is chosen by the process itself: it is cut to a length and cleaned (CleanText) before anything else
// sees it. The command line is not read here: reading it can wait for the process's own memory (a page served by FUSE
// or userfaultfd), see command_reader.h.
// Thread rule: any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"
#include "common/unique_fd.h"

namespace xschedd {

// As they were when the process connected: what it becomes afterwards (setuid, exec) changes nothing, and whoever is
// given the connected socket speaks as the one that connected.
struct PeerIdentity {
  pid_t pid = 0;  // as the daemon's pid namespace has it; 0: it is in none below that, so nothing can be known of it
  uid_t uid = 0;  // as the daemon's user namespace has it; see IsNobody
  gid_t gid = 0;
  UniqueFd pidfd;  // readable once the process is dead
};

// "pid 4711 (uid 1000)", as the log calls it.
std::string ProcessText(std::uint64_t pid, std::uint32_t uid);

// SO_PEERCRED and SO_PEERPIDFD (pidfd_open where the kernel is older). Fails if the peer has exited already.
Result<PeerIdentity> ReadPeer(int socket);

struct ProcessInfo {
  std::string exe;     // path; empty if it cannot be read
  std::string cgroup;  // "/user.slice/..."; empty if it cannot be read
};

// Whether `uid` may be several users: where the daemon's user namespace does not know all of them, the kernel calls
// those that it does not know by one number.
bool IsNobody(uid_t uid);
// That number, from /proc/self/uid_map and /proc/sys/kernel/overflowuid; none: every user is known.
std::optional<uid_t> NobodyOf(const std::string& uid_map, const std::string& overflow_uid);

// Reads /proc/<pid>, then checks through the pidfd that it was still that process.
ProcessInfo ReadProcess(pid_t pid, int pidfd);

// Of the text of /proc/<pid>/cgroup: the unified hierarchy's path ("0::/path"), else the first line's.
std::string CgroupPath(std::string_view text);

// Whether the process behind a pidfd has exited.
bool HasExited(int pidfd);

// At most `limit` bytes of `text`, with what is not printable UTF-8, and '"', replaced by '?': fit for a log line and
// for protobuf.
std::string CleanText(std::string_view text, std::size_t limit);

}  // namespace xschedd
