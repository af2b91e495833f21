#include "tools/nri/unix_socket.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "common/unix_socket.h"

namespace xschedd::nri {

Result<UniqueFd> ConnectTo(const std::string& path, UnixSocket mode) {
  UniqueFd fd = ConnectUnix(path, SOCK_NONBLOCK);
  if (!fd.IsValid())
    return Fail("cannot connect to " + path + ": " + std::strerror(errno), "check whether its owner is running");
  if (mode == UnixSocket::kBlocking) ::fcntl(fd.Get(), F_SETFL, 0);
  return fd;
}

}  // namespace xschedd::nri
