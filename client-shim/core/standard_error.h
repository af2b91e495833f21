// Writes to the host's standard error, if descriptor 2 is one. A program that has closed it, or was started without it,
// gets the number 2 for the next file that it opens, and a line of ours would end up in its data.
//
// So nothing is written to what cannot be a standard error that was inherited or set on purpose: a descriptor that is
// closed on exec, a regular file open for reading and writing, a connection to another machine. A file that a program
// without a standard error opened for writing only, without O_CLOEXEC, cannot be distinguished from a log. Needs the C
// library only. Thread rule: any thread; changes errno.
#pragma once

#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace xschedd::shim {

inline bool IsStandardError() {
  const int flags = fcntl(STDERR_FILENO, F_GETFD);
  if (flags < 0 || (flags & FD_CLOEXEC) != 0) return false;
  const int mode = fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE;
  struct stat file;
  // By syscall: the symbol fstat of glibc 2.33 and later is newer than what the stub may need.
  if (mode == O_RDONLY || syscall(SYS_fstat, STDERR_FILENO, &file) != 0) return false;
  if (S_ISREG(file.st_mode)) return mode == O_WRONLY;
  if (!S_ISSOCK(file.st_mode)) return true;
  int domain = AF_UNSPEC;
  socklen_t size = sizeof domain;
  return getsockopt(STDERR_FILENO, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

// In one write. An error of it is ignored, because there is nowhere to report it.
inline void WriteStandardError(const char* line, size_t size) {
  if (IsStandardError()) [[maybe_unused]]
    const ssize_t written = write(STDERR_FILENO, line, size);
}

}  // namespace xschedd::shim
