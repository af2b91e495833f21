#include "tools/nri/unix_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace xschedd::nri {

Result<UniqueFd> ConnectUnix(const std::string& path, UnixSocket mode) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return Fail("the socket's path is too long: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.Get() < 0) return Fail(std::string("cannot make a socket: ") + std::strerror(errno));
  if (::connect(fd.Get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return Fail("cannot connect to " + path + ": " + std::strerror(errno), "check whether its owner is running");
  if (mode == UnixSocket::kBlocking) ::fcntl(fd.Get(), F_SETFL, 0);
  return fd;
}

}  // namespace xschedd::nri
