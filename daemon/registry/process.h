// Who a process is, according to the kernel: credentials of its socket, a pidfd, and /proc.
//
// Text from /proc is chosen by the process itself: it is cut to a length and cleaned (CleanText) before anything else
// sees it. The command line is not read here: reading it can wait for the process's own memory (a page served by FUSE
// or userfaultfd), see command_reader.h.
// Thread rule: any thread.
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

namespace xschedd {

// As it was when the process connected. What it becomes afterwards (setuid, exec) changes nothing, and a process that
// is passed the connected socket speaks as the one that connected.
struct PeerIdentity {
  pid_t pid = 0;  // as the daemon's pid namespace has it; 0: it is in none below that, so nothing can be known of it
  uid_t uid = 0;  // as the daemon's user namespace has it; see IsNobody
  gid_t gid = 0;
  std::vector<gid_t> groups;  // its other groups
  UniqueFd pidfd;             // readable once the process is dead
};

// "pid 4711 (uid 1000)", for the log.
std::string ProcessText(std::uint64_t pid, std::uint32_t uid);

// What the kernel and /proc say of a process by its number alone.
struct ProcessStatus {
  std::uint64_t start_ticks = 0;
  std::vector<uid_t> uids;  // real, effective, saved, of the file system
};

// What ReadPeer asks the kernel; others for tests.
struct PeerCalls {
  std::function<int(int socket)> peer_pidfd;  // SO_PEERPIDFD; -1 and errno
  std::function<int(pid_t pid)> open_pidfd;   // the same
  std::function<std::optional<ProcessStatus>(pid_t pid)> read_status;
};
const PeerCalls& SystemPeerCalls();

// SO_PEERCRED and SO_PEERPIDFD. Fails if the peer has exited already. Before Linux 6.5, which has no SO_PEERPIDFD, the
// process is found by its number, which may be another's by then: one that has other uids, or that changes meanwhile,
// is refused. What that cannot tell is a process of the same user that was given the number before the daemon looked:
// the kernel does not say when somebody connected, and a process may well have started a moment before it does. It
// takes that the one who connected has ended, has left its socket to a third, and that all numbers were given out once
// between connecting and being accepted. The third then speaks as that other one. Nobody else's rights are his: uid,
// gid and groups are the socket's. exe and group are any user's to choose. The cgroup's priority, the device files and,
// after a restart, the memory of a process of his he has as well by connecting from it and handing the socket on. Only
// where processes of one uid do not trust each other (containers that are all root) is it more, and these share quotas,
// rights over each other's clients, and more (docs/explanation/security-model.md, Quotas).
Result<PeerIdentity> ReadPeer(int socket, const PeerCalls& calls = SystemPeerCalls());

// The 22nd field of /proc/PID/stat, clock ticks since boot; 0: not known.
std::uint64_t StartTicks(std::string_view stat);
// Of the text of /proc/PID/status: the line "Uid:".
std::vector<uid_t> UidsOf(std::string_view status);

// Who logged in at first, whoever the process has become since (sudo): /proc/PID/loginuid. None: nobody did, or the
// kernel does not keep it.
std::optional<uid_t> ReadLoginUid(pid_t pid);
std::optional<uid_t> LoginUidOf(std::string_view text);

struct ProcessInfo {
  std::string exe;               // path; empty if it cannot be read
  std::string cgroup;            // "/user.slice/..."; empty if it cannot be read
  bool is_cgroup_exact = false;  // it is the kernel's path (cgroups.h), uncut and unchanged by CleanText
};

// Whether `uid` may be several users: where the daemon's user namespace does not know all of them, the kernel calls
// those that it does not know by one number.
bool IsNobody(uid_t uid);
// That number, from /proc/self/uid_map and /proc/sys/kernel/overflowuid; none: every user is known.
std::optional<uid_t> NobodyOf(const std::string& uid_map, const std::string& overflow_uid);

// Reads /proc/<pid>, then checks through the pidfd that it was still that process.
ProcessInfo ReadProcess(pid_t pid, int pidfd);

// Whether the process behind a pidfd has exited.
bool HasExited(int pidfd);

// At most `limit` bytes of `text`, with what is not printable UTF-8, and '"', replaced by '?': fit for a log line and
// for protobuf.
std::string CleanText(std::string_view text, std::size_t limit);

}  // namespace xschedd
