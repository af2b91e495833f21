#include "tools/xschedctl/bundle/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "common/unique_fd.h"

namespace xschedd::ctl {
namespace {

// 0, or errno.
int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written == 0 ? EIO : errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

int WriteInPlace(const std::string& path, const std::string& bytes) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd.IsValid() ? WriteAll(fd.Get(), bytes) : errno;
}

}  // namespace

int ReplaceFile(const std::string& path, std::string_view bytes, mode_t mode) {
  const std::string beside = path + ".tmp-" + std::to_string(::getpid());
  const UniqueFd fd(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.IsValid()) return errno;
  int error = WriteAll(fd.Get(), bytes);
  if (error == 0 && ::fchmod(fd.Get(), mode) != 0) error = errno;
  // A full disk may be reported only here.
  if (error == 0 && ::fsync(fd.Get()) != 0) error = errno;
  if (error == 0 && ::rename(beside.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(beside.c_str());
  return error;
}

Result<void> WriteWhole(const std::string& path, const std::string& bytes) {
  struct stat there {};
  const bool is_special = ::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode);
  const int error = is_special ? WriteInPlace(path, bytes) : ReplaceFile(path, bytes, 0600);
  if (error == 0) return {};
  return Fail("cannot write " + path + ": " + std::strerror(error),
              error == ENOSPC || error == EDQUOT ? "make room, or give a file on another disk with -o"
                                                 : "give another file with -o");
}

}  // namespace xschedd::ctl
