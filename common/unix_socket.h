// Connects to a Unix socket by its path. Thread rule: pure system calls.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "common/unique_fd.h"

namespace xschedd {

// `flags`: of socket(2), in addition; with SOCK_NONBLOCK, a listener that accepts nothing fails with EAGAIN instead of
// blocking. Invalid: errno says why, EMFILE or ENFILE that no socket could be made, ENAMETOOLONG that the path is too
// long.
inline UniqueFd ConnectUnix(const std::string& path, int flags = 0) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return {};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (fd.IsValid() && ::connect(fd.Get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int why = errno;
    fd.Reset();
    errno = why;
  }
  return fd;
}

}  // namespace xschedd
