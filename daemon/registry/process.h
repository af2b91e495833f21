// What the kernel says about a process: the credentials of its socket, a pidfd, and /proc.
//
// A process chooses its own text in /proc, so that text is cut and cleaned (CleanText) before anything else uses it.
// command_reader.h reads the command line, because that can block on the process's own memory (a page served by FUSE or
// userfaultfd). Thread rule: any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "common/unique_fd.h"
#include "daemon/registry/principal.h"

namespace xschedd {

// As of when the process connected. Later changes (setuid, exec) have no effect, and a process that receives the
// connected socket acts as the one that connected.
struct PeerIdentity {
  pid_t pid = 0;  // in the daemon's pid namespace; 0: it has none there, so nothing is known about it
  uid_t uid = 0;  // in the daemon's user namespace; see IsNobody
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary
  UniqueFd pidfd;             // OpenPidfd
};

// "pid 4711 (uid 1000)", for the log.
std::string ProcessText(std::uint64_t pid, std::uint32_t uid);

// What /proc says about whichever process has a pid now.
struct ProcessStatus {
  std::uint64_t start_ticks = 0;
  std::vector<uid_t> uids;  // real, effective, saved, of the file system
};

// The system calls of ReadPeer; tests give others.
struct PeerCalls {
  std::function<int(int socket)> peer_pidfd;  // SO_PEERPIDFD; -1 and errno if it fails
  std::function<int(pid_t pid)> open_pidfd;   // -1 if it fails
  std::function<std::optional<ProcessStatus>(pid_t pid)> read_status;
};
const PeerCalls& SystemPeerCalls();

// A pidfd of the process that has this pid now, which is readable once the process is dead. Before Linux 5.3 its folder
// in /proc, which never names another process, but has no event. -1 and errno: there is no such process.
int OpenPidfd(pid_t pid);
bool HasExitEvent(int pidfd);

// From SO_PEERCRED and SO_PEERPIDFD. Fails if the peer has exited already.
//
// Linux before 6.5 has no SO_PEERPIDFD. There the process is found by its pid, which may belong to another process by
// then: one that has other uids, or that changes while it is examined, is refused. What this cannot detect is another
// process of the same user that got the pid before the daemon read it, because the kernel does not say when a process
// connected. For that to happen, the process that connected must leave its socket to a third process and end, and all
// pids must be used once between connect and accept. The third process then acts as the second. It gains no other
// user's rights: uid, gid and groups come from the socket, and any user can choose exe and group anyway. The cgroup's
// priority, the device files and, after a restart, the memory of a process of its own user it could get just as well by
// connecting from that process and passing the socket on. It gains something only where processes of one uid do not
// trust each other (containers that all run as root): it then acts in the place (principal.h) of the process that got
// the pid, which it cannot choose.
Result<PeerIdentity> ReadPeer(int socket, const PeerCalls& calls = SystemPeerCalls());

// The 22nd field of /proc/PID/stat, clock ticks since boot; 0: not known.
std::uint64_t StartTicks(std::string_view stat);
// The uids in the line "Uid:" of the text of /proc/PID/status.
std::vector<uid_t> UidsOf(std::string_view status);

// The user who logged in, whichever user the process has become since (sudo): /proc/PID/loginuid. None: nobody logged
// in, or the kernel does not record it.
std::optional<uid_t> ReadLoginUid(pid_t pid);
std::optional<uid_t> LoginUidOf(std::string_view text);

struct ProcessInfo {
  std::string exe;               // path; empty if it cannot be read
  std::string cgroup;            // "/user.slice/..."; empty if it cannot be read
  bool is_cgroup_exact = false;  // it is the kernel's whole path (cgroups.h), not changed by CleanText
  std::string place;             // PlaceOf (principal.h)
};

// Whether `uid` may stand for several users: the kernel shows all users that the daemon's user namespace does not map
// as one uid.
bool IsNobody(uid_t uid);
// That uid, from the texts of /proc/self/uid_map and /proc/sys/kernel/overflowuid; none: every user is mapped.
std::optional<uid_t> NobodyOf(const std::string& uid_map, const std::string& overflow_uid);

// How many pid namespaces the line "NSpid:" of the text of /proc/PID/status names: those of the reader and below.
std::size_t PidDepthOf(std::string_view status);

// Reads /proc/<pid>, then checks through the pidfd that it was still that process.
ProcessInfo ReadProcess(pid_t pid, int pidfd);

// Whether the process behind a pidfd has exited.
bool HasExited(int pidfd);

// At most `limit` bytes of `text`, in which '?' replaces '"' and everything that is not printable UTF-8: safe in a log
// line and in protobuf.
std::string CleanText(std::string_view text, std::size_t limit);

}  // namespace xschedd
