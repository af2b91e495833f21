#include "daemon/metrics/metrics_listen.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace xschedd {
namespace {

constexpr int kBacklog = 64;
constexpr char kSandboxRemedy[] =
    "in the systemd unit's sandbox use xschedd-metrics.socket, or [metrics] address = "
    "\"unix:/run/xschedd/metrics.sock\"";

union AnyAddress {
  sockaddr any;
  sockaddr_un local;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

// Returns the length that the kernel wants.
socklen_t Fill(const ListenAddress& address, AnyAddress& out) {
  std::memset(&out, 0, sizeof out);
  if (address.kind == ListenAddress::Kind::kUnix) {
    out.local.sun_family = AF_UNIX;
    std::memcpy(out.local.sun_path, address.host.c_str(), address.host.size() + 1);
    return sizeof out.local;
  }
  if (address.kind == ListenAddress::Kind::kIpv4) {
    out.v4.sin_family = AF_INET;
    out.v4.sin_port = htons(address.port);
    ::inet_pton(AF_INET, address.host.c_str(), &out.v4.sin_addr);
    return sizeof out.v4;
  }
  out.v6.sin6_family = AF_INET6;
  out.v6.sin6_port = htons(address.port);
  ::inet_pton(AF_INET6, address.host.c_str(), &out.v6.sin6_addr);
  return sizeof out.v6;
}

// Removes a socket file that nobody listens on; fails if the path is something else or in use.
Result<void> RemoveStaleSocket(const std::string& path, const AnyAddress& address, socklen_t size) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  if (!S_ISSOCK(status.st_mode)) return Fail(path + " exists and is not a socket", "move it away");
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(probe.Get(), &address.any, size) == 0 || errno == EAGAIN) {
    return Fail("another process already listens on " + path, "choose another [metrics] address");
  }
  ::unlink(path.c_str());
  return {};
}

}  // namespace

Result<UniqueFd> Listen(const ListenAddress& address) {
  const bool is_unix = address.kind == ListenAddress::Kind::kUnix;
  std::string where = address.host;
  if (!is_unix) where += " port " + std::to_string(address.port);
  AnyAddress to;
  const socklen_t size = Fill(address, to);
  UniqueFd socket(::socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.IsValid()) {
    return Fail("cannot make a socket for " + where + ": " + std::strerror(errno), kSandboxRemedy);
  }
  if (is_unix) {
    if (auto removed = RemoveStaleSocket(address.host, to, size); !removed) return tl::unexpected(removed.error());
  } else {
    const int on = 1;
    ::setsockopt(socket.Get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  if (::bind(socket.Get(), &to.any, size) != 0) {
    const std::string why = std::strerror(errno);
    const bool is_taken = errno == EADDRINUSE;
    return Fail("cannot bind " + where + ": " + why, is_taken ? "choose another port" : kSandboxRemedy);
  }
  if (is_unix) ::chmod(address.host.c_str(), 0666);
  if (::listen(socket.Get(), kBacklog) != 0) return Fail("cannot listen on " + where + ": " + std::strerror(errno));
  return socket;
}

std::string ListensAt(int socket) {
  AnyAddress address;
  std::memset(&address, 0, sizeof address);
  socklen_t size = sizeof address;
  ::getsockname(socket, &address.any, &size);
  char host[INET6_ADDRSTRLEN] = {};
  switch (address.any.sa_family) {
    case AF_UNIX:
      return "unix:" +
             std::string(address.local.sun_path, ::strnlen(address.local.sun_path, sizeof address.local.sun_path));
    case AF_INET:
      ::inet_ntop(AF_INET, &address.v4.sin_addr, host, sizeof host);
      return std::string(host) + ":" + std::to_string(ntohs(address.v4.sin_port));
    case AF_INET6:
      ::inet_ntop(AF_INET6, &address.v6.sin6_addr, host, sizeof host);
      return "[" + std::string(host) + "]:" + std::to_string(ntohs(address.v6.sin6_port));
    default:
      return "an unknown address";
  }
}

}  // namespace xschedd
