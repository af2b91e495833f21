#include "tools/xschedctl/slurm/usage.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "common/unique_fd.h"

namespace xschedd::ctl {
namespace {

constexpr int kFlags = O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
constexpr mode_t kMode = 0644;
constexpr int kAttempts = 8;
// About 2,000 lines: more than a node ends steps between two that write the same one.
constexpr off_t kTailBytes = 1 << 20;

bool IsStillThere(int fd, const std::string& path) {
  struct stat open {};
  struct stat named {};
  return ::fstat(fd, &open) == 0 && ::lstat(path.c_str(), &named) == 0 && open.st_ino == named.st_ino &&
         open.st_dev == named.st_dev;
}

// A new file has its mode whatever the umask of the one that makes it, such as slurmd's.
UniqueFd OpenOrMake(const std::string& path) {
  UniqueFd made(::open(path.c_str(), kFlags | O_CREAT | O_EXCL, kMode));
  if (made.IsValid()) return ::fchmod(made.Get(), kMode) == 0 ? std::move(made) : UniqueFd();
  return UniqueFd(errno == EEXIST ? ::open(path.c_str(), kFlags) : -1);
}

// Locked, and not the one that another writer has just put aside.
UniqueFd OpenLocked(const std::string& path) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    UniqueFd fd = OpenOrMake(path);
    if (!fd.IsValid() && errno == ENOENT) continue;  // put aside in between
    if (!fd.IsValid() || ::flock(fd.Get(), LOCK_EX) != 0) break;
    if (IsStillThere(fd.Get(), path)) return fd;
  }
  return UniqueFd();
}

// The last lines of the file, after a line's end.
std::string Tail(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return "\n";
  const off_t from = std::max<off_t>(status.st_size - kTailBytes, 0);
  std::string text(1 + static_cast<std::size_t>(status.st_size - from), '\n');
  const ssize_t count = ::pread(fd, text.data() + 1, text.size() - 1, from);
  text.resize(1 + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

// `line` with its end. The file that was put aside last may have it, too.
bool IsWritten(int fd, const std::string& path, const std::string& line) {
  const std::string whole = "\n" + line;
  if (Tail(fd).find(whole) != std::string::npos) return true;
  const UniqueFd aside(::open((path + ".1").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  return aside.IsValid() && Tail(aside.Get()).find(whole) != std::string::npos;
}

}  // namespace

Result<void> AppendUsage(const std::string& path, std::string_view line, std::size_t max_bytes) {
  const auto fail = [&] { return Fail("cannot write " + path + ": " + std::strerror(errno)); };
  UniqueFd fd = OpenLocked(path);
  struct stat status {};
  if (!fd.IsValid() || ::fstat(fd.Get(), &status) != 0) return fail();
  const std::string text = std::string(line) + "\n";
  if (IsWritten(fd.Get(), path, text)) return {};
  if (status.st_size > 0 && static_cast<std::size_t>(status.st_size) + text.size() > max_bytes) {
    if (::rename(path.c_str(), (path + ".1").c_str()) != 0) return fail();
    // The old one's lock is kept until the new one has its mode.
    UniqueFd next = OpenLocked(path);
    if (!next.IsValid() || ::fchown(next.Get(), status.st_uid, status.st_gid) != 0 ||
        ::fchmod(next.Get(), status.st_mode & 07777) != 0) {
      return fail();
    }
    fd = std::move(next);
  }
  // In one call, so that a reader sees whole lines.
  if (::write(fd.Get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return fail();
  return {};
}

}  // namespace xschedd::ctl
