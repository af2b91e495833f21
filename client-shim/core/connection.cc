#include "client-shim/core/connection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/preamble.h"
#include "common/runtime_dir.h"
#include "common/shared_memory.h"

namespace xschedd::shim {
namespace {

using Failure = tl::unexpected<ConnectError>;

Failure Unreachable(const std::string& what) {
  return Failure(ConnectError{Error{what + ": " + std::strerror(errno), "start xschedd"}, false});
}
Failure Refused(const std::string& what, const std::string& remedy) {
  return Failure(ConnectError{Error{what, remedy}, true});
}

bool WaitFor(int fd, short events, int timeout_ms) {
  pollfd waiting{fd, events, 0};
  int ready = 0;
  do {
    ready = ::poll(&waiting, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) errno = ETIMEDOUT;
  return ready > 0;
}

// Receives the welcome and the descriptors that come with it.
bool Receive(int socket, PreambleWelcome* welcome, UniqueFd (&descriptors)[kPreambleDescriptors], int timeout_ms) {
  std::size_t have = 0;
  int next = 0;
  while (have < sizeof *welcome) {
    if (!WaitFor(socket, POLLIN, timeout_ms)) return false;
    iovec piece{reinterpret_cast<char*>(welcome) + have, sizeof *welcome - have};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kPreambleDescriptors)];
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) {
      if (got == 0) errno = ECONNRESET;
      return false;
    }
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
        UniqueFd owned(fd);  // one too many is closed again
        if (next < kPreambleDescriptors) descriptors[next++] = std::move(owned);
      }
    }
    have += static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

tl::expected<Connection, ConnectError> ConnectToDaemon(int timeout_ms) {
  const std::string path = ClientSocketPath(RuntimeDir());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Refused("the path of the daemon's socket is too long: " + path, "choose a shorter XSCHEDD_RUNTIME_DIR");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);

  // Non-blocking from the start: gRPC wants it so, and a stopped daemon's full backlog must not block us.
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.IsValid()) return Unreachable("cannot make a socket");
  if (::connect(socket.Get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Unreachable("no daemon at " + path);
  }

  PreambleHello hello{};
  std::memcpy(hello.magic, kHelloMagic, sizeof hello.magic);
  hello.abi_version = abi::kVersion;
  hello.layout_hash = abi::kLayoutHash;
  // 16 bytes into the empty buffer of a fresh socket are taken whole, or not at all when the daemon has refused us on
  // sight and hung up: then its reason can still be read.
  [[maybe_unused]] const ssize_t sent = ::send(socket.Get(), &hello, sizeof hello, MSG_NOSIGNAL);

  PreambleWelcome welcome{};
  UniqueFd descriptors[kPreambleDescriptors];
  if (!Receive(socket.Get(), &welcome, descriptors, timeout_ms)) return Unreachable("no answer from the daemon");
  if (std::memcmp(welcome.magic, kWelcomeMagic, sizeof welcome.magic) != 0) {
    return Refused("whatever listens at " + path + " is no xschedd", "check XSCHEDD_RUNTIME_DIR");
  }
  switch (welcome.status) {
    case PreambleStatus::kOk:
      break;
    case PreambleStatus::kVersionMismatch:
      return Refused("the daemon is of another release", "install shim and daemon from one package");
    case PreambleStatus::kQuota:
      return Refused("the daemon takes no more clients of this user",
                     "end some, or raise the quota in its configuration");
    case PreambleStatus::kDraining:
      return Refused("the daemon takes no new clients at the moment", "xschedctl shows why");
    default:
      return Refused("the daemon refused this client", "its log says why");
  }
  if (!descriptors[kPreambleDescriptors - 1].IsValid()) {
    return Refused("the daemon sent no shared memory", "raise the limit of open files of this process");
  }

  Result<Mapping> board = MapSharedMemory(descriptors[0].Get(), sizeof(abi::Board), Access::kReadOnly);
  if (!board) return Failure(ConnectError{board.error(), true});
  Result<Mapping> ledger = MapSharedMemory(descriptors[1].Get(), sizeof(abi::Ledger), Access::kReadWrite);
  if (!ledger) return Failure(ConnectError{ledger.error(), true});
  const Result<Session*> session =
      Session::Make(static_cast<const abi::Board*>(board->Address()), static_cast<abi::Ledger*>(ledger->Address()),
                    std::move(descriptors[2]));
  if (!session) return Failure(ConnectError{session.error(), true});
  // From here on the memory is the session's, which is for good.
  board->Leak();
  ledger->Leak();
  return Connection{std::move(socket), std::string(welcome.token, sizeof welcome.token), *session};
}

}  // namespace xschedd::shim
