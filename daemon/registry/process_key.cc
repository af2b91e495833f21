#include "daemon/registry/process_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "daemon/registry/process.h"

namespace xschedd {
namespace {

constexpr long kPidfsMagic = 0x50494446;  // PID_FS_MAGIC, linux/magic.h

std::uint64_t PidfdInode(int pidfd) {
  struct statfs file_system {};
  struct stat status {};
  // Before pidfs all pidfds share one inode.
  if (::fstatfs(pidfd, &file_system) != 0 || file_system.f_type != kPidfsMagic) return 0;
  return ::fstat(pidfd, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

bool IsSame(const ProcessKey& one, const ProcessKey& other) {
  if (one.start_ticks == 0 || one.start_ticks != other.start_ticks) return false;
  return one.pidfd_inode == 0 || other.pidfd_inode == 0 || one.pidfd_inode == other.pidfd_inode;
}

ProcessKey ReadProcessKey(pid_t pid, int pidfd) {
  const UniqueFd file(::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.IsValid()) return {};
  char text[1024];
  const ssize_t size = ::read(file.Get(), text, sizeof text);
  const ProcessKey key{size > 0 ? StartTicks({text, static_cast<std::size_t>(size)}) : 0, PidfdInode(pidfd)};
  return HasExited(pidfd) ? ProcessKey{} : key;  // what was read may belong to a successor with the same pid
}

UniqueFd OpenProcess(pid_t pid, const ProcessKey& key) {
  if (pid <= 0) return UniqueFd();
  UniqueFd pidfd(OpenPidfd(pid));
  if (!pidfd.IsValid()) return pidfd;
  ::fcntl(pidfd.Get(), F_SETFD, FD_CLOEXEC);
  if (!IsSame(ReadProcessKey(pid, pidfd.Get()), key)) return UniqueFd();
  return pidfd;
}

}  // namespace xschedd
