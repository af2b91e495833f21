#include "daemon/registry/process.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <utility>

#include "daemon/registry/cgroups.h"

namespace xschedd {
namespace {

#ifndef SO_PEERPIDFD
constexpr int kSoPeerPidfd = 77;  // Linux 6.5; glibc 2.36 does not name it yet
#else
constexpr int kSoPeerPidfd = SO_PEERPIDFD;
#endif

constexpr std::size_t kIdentityTextLimit = 1024;

std::string ReadSmallFile(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.IsValid()) return {};
  char buffer[4096];
  const ssize_t size = ::read(fd.Get(), buffer, sizeof buffer);
  return size > 0 ? std::string(buffer, static_cast<std::size_t>(size)) : std::string();
}

// Length of the well-formed UTF-8 sequence at the start of `text`; 0: there is none.
std::size_t SequenceLength(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool outside = (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf4 && byte(1) > 0x8f);
  return overlong || outside ? 0 : length;
}

// Empty: the peer has none, or this is not a Unix socket.
std::vector<gid_t> PeerGroups(int socket) {
  std::vector<gid_t> groups(32);
  for (;;) {
    auto bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    const bool is_whole = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes) == 0;
    if (!is_whole && errno != ERANGE) return {};
    groups.resize(bytes / sizeof(gid_t));
    if (is_whole) return groups;
  }
}

// A pidfd of the process that has this pid now, if it can be the one that connected as `uid`.
int OpenByNumber(pid_t pid, uid_t uid, const PeerCalls& calls) {
  const std::optional<ProcessStatus> before = calls.read_status(pid);
  UniqueFd pidfd(calls.open_pidfd(pid));
  const std::optional<ProcessStatus> after = calls.read_status(pid);
  const bool is_one = before && after && before->start_ticks != 0 && before->start_ticks == after->start_ticks;
  const bool has_uid = is_one && std::find(after->uids.begin(), after->uids.end(), uid) != after->uids.end();
  return has_uid ? pidfd.Release() : -1;
}

std::optional<ProcessStatus> ReadStatus(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  ProcessStatus status{StartTicks(ReadSmallFile(folder + "/stat")), UidsOf(ReadSmallFile(folder + "/status"))};
  return status.start_ticks != 0 ? std::optional(std::move(status)) : std::nullopt;
}

// `own_pid_namespace`: the daemon's; empty: not known yet.
Surroundings ReadSurroundings(const std::string& folder, const std::string& own_pid_namespace) {
  Surroundings surroundings;
  surroundings.cgroup = CgroupIn(HostHierarchy(), ReadSmallFile(folder + "/cgroup"));
  char target[64];
  const ssize_t length = ::readlink((folder + "/ns/pid").c_str(), target, sizeof target);
  if (length > 0) surroundings.pid_namespace.assign(target, static_cast<std::size_t>(length));
  // The status costs most, and is seldom needed. The line may be missing: with very many groups, what is read ends
  // before it.
  if (surroundings.pid_namespace.empty() || surroundings.pid_namespace != own_pid_namespace)
    surroundings.is_pid_nested = PidDepthOf(ReadSmallFile(folder + "/status")) != 1;
  return surroundings;
}

int PeerPidfd(int socket) {
  int pidfd = -1;
  socklen_t size = sizeof pidfd;
  return ::getsockopt(socket, SOL_SOCKET, kSoPeerPidfd, &pidfd, &size) == 0 ? pidfd : -1;
}

}  // namespace

const PeerCalls& SystemPeerCalls() {
  static const PeerCalls calls{&PeerPidfd, &OpenPidfd, &ReadStatus};
  return calls;
}

std::uint64_t StartTicks(std::string_view stat) {
  // The second field is a name in brackets, which may contain anything.
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return 0;
  stat.remove_prefix(name_end + 1);
  for (int field = 2; field < 22; ++field) {
    const std::size_t space = stat.find(' ');
    if (space == std::string_view::npos) return 0;
    stat.remove_prefix(space + 1);
  }
  std::uint64_t ticks = 0;
  const auto [end, error] = std::from_chars(stat.data(), stat.data() + stat.size(), ticks);
  return error == std::errc() ? ticks : 0;
}

std::vector<uid_t> UidsOf(std::string_view status) {
  constexpr std::string_view kKey = "\nUid:";
  const std::size_t key = status.find(kKey);
  if (key == std::string_view::npos) return {};
  std::istringstream line(
      std::string(status.substr(key + kKey.size(), status.find('\n', key + 1) - key - kKey.size())));
  std::vector<uid_t> uids;
  for (uid_t uid = 0; line >> uid;)
    uids.push_back(uid);
  return uids;
}

std::optional<uid_t> LoginUidOf(std::string_view text) {
  uid_t uid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), uid);
  constexpr auto kNobodyLoggedIn = static_cast<uid_t>(-1);
  return error == std::errc() && uid != kNobodyLoggedIn ? std::optional(uid) : std::nullopt;
}

std::optional<uid_t> ReadLoginUid(pid_t pid) {
  return LoginUidOf(ReadSmallFile("/proc/" + std::to_string(pid) + "/loginuid"));
}

std::optional<uid_t> NobodyOf(const std::string& uid_map, const std::string& overflow_uid) {
  std::istringstream map(uid_map);
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
  std::uint64_t mapped = 0;
  while (map >> inside >> outside >> count)
    mapped += count;
  constexpr std::uint64_t kAllUids = 0xffff'ffff;  // all but the last one, which is not a user
  if (mapped >= kAllUids) return std::nullopt;
  uid_t nobody = 65534;
  std::istringstream(overflow_uid) >> nobody;
  return nobody;
}

std::string CleanText(std::string_view text, std::size_t limit) {
  std::string clean;
  while (!text.empty()) {
    const std::size_t length = SequenceLength(text);
    // Quotes are replaced, because a log line puts such text in quotes. U+0080..U+009F are control characters as well:
    // a terminal may take U+009B for the start of a command.
    const bool control = (length == 1 && (text[0] < 0x20 || text[0] == 0x7f || text[0] == '"')) ||
                         (length == 2 && text.substr(0, 1) == "\xc2" && static_cast<unsigned char>(text[1]) < 0xa0);
    const std::size_t taken = length == 0 ? 1 : length;
    if (clean.size() + taken > limit) break;
    if (length == 0 || control) {
      clean += '?';
    } else {
      clean += text.substr(0, length);
    }
    text.remove_prefix(taken);
  }
  return clean;
}

std::string ProcessText(std::uint64_t pid, std::uint32_t uid) {
  return "pid " + std::to_string(pid) + " (uid " + std::to_string(uid) + ")";
}

Result<PeerIdentity> ReadPeer(int socket, const PeerCalls& calls) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return Fail(std::string("the kernel does not say which process connected: ") + std::strerror(errno));
  }
  PeerIdentity identity;
  identity.pid = credentials.pid;
  identity.uid = credentials.uid;
  identity.gid = credentials.gid;
  identity.groups = PeerGroups(socket);

  int pidfd = calls.peer_pidfd(socket);
  // Any other error means that the peer has exited: its pid may belong to another process by now.
  const bool is_old_kernel = pidfd < 0 && errno == ENOPROTOOPT;
  if (pidfd < 0 && identity.pid <= 0) return identity;  // the peer is in a pid namespace that the daemon cannot see
  if (is_old_kernel) pidfd = OpenByNumber(identity.pid, identity.uid, calls);
  if (pidfd < 0) return Fail("the process that connected has exited already");
  ::fcntl(pidfd, F_SETFD, FD_CLOEXEC);
  identity.pidfd.Reset(pidfd);
  // Newer kernels give a pidfd even for a process that is dead.
  if (HasExited(pidfd)) return Fail("the process that connected has exited already");
  return identity;
}

bool IsNobody(uid_t uid) {
  // Neither file changes while the daemon runs.
  static const std::optional<uid_t> nobody =
      NobodyOf(ReadSmallFile("/proc/self/uid_map"), ReadSmallFile("/proc/sys/kernel/overflowuid"));
  return nobody == uid;
}

int OpenPidfd(pid_t pid) {
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (pidfd >= 0 || errno != ENOSYS) return pidfd;
  return ::open(("/proc/" + std::to_string(pid)).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool HasExitEvent(int pidfd) {
  struct stat status {};
  return ::fstat(pidfd, &status) != 0 || !S_ISDIR(status.st_mode);
}

bool HasExited(int pidfd) {
  pollfd entry{pidfd, POLLIN, 0};
  if (::poll(&entry, 1, 0) != 1) return false;
  if (HasExitEvent(pidfd)) return true;
  // A folder in /proc is always readable. After the process, there is nothing in it.
  const UniqueFd file(::openat(pidfd, "stat", O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t size = file.IsValid() ? ::read(file.Get(), text, sizeof text) : -1;
  if (size <= 0) return true;
  // "PID (NAME) STATE ...", with any characters in the name. A dead process that its parent has not waited for: Z, X.
  const std::string_view stat(text, static_cast<std::size_t>(size));
  const std::size_t state = stat.rfind(") ");
  return state == std::string_view::npos || stat.substr(state + 2, 1).find_first_of("ZX") == 0;
}

std::size_t PidDepthOf(std::string_view status) {
  constexpr std::string_view kKey = "\nNSpid:";
  const std::size_t key = status.find(kKey);
  if (key == std::string_view::npos) return 0;
  const std::string_view line = status.substr(key + kKey.size(), status.find('\n', key + 1) - key - kKey.size());
  return static_cast<std::size_t>(std::count(line.begin(), line.end(), '\t'));
}

ProcessInfo ReadProcess(pid_t pid, int pidfd) {
  // The daemon's own surroundings do not change in a way that matters: nobody moves it into a container.
  static const Surroundings daemon = ReadSurroundings("/proc/self", "");
  const std::string folder = "/proc/" + std::to_string(pid);
  ProcessInfo info;
  char target[PATH_MAX];
  const ssize_t length = ::readlink((folder + "/exe").c_str(), target, sizeof target);
  if (length > 0) info.exe = CleanText({target, static_cast<std::size_t>(length)}, kIdentityTextLimit);
  const Surroundings surroundings = ReadSurroundings(folder, daemon.pid_namespace);
  info.cgroup = CleanText(surroundings.cgroup.value_or(""), kIdentityTextLimit);
  info.is_cgroup_exact = surroundings.cgroup == info.cgroup;
  info.place = PlaceOf(surroundings, daemon, pid);
  if (!HasExited(pidfd)) return info;
  ProcessInfo unknown;  // what was read may belong to a successor with the same pid
  unknown.place = PlaceAlone(pid);
  return unknown;
}

}  // namespace xschedd
