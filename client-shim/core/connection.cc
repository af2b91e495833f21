#include "client-shim/core/connection.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "common/preamble_client.h"
#include "common/runtime_dir.h"
#include "common/shared_memory.h"

namespace xschedd::shim {
namespace {

using Failure = tl::unexpected<ConnectError>;

// With the error in errno.
Failure Unreachable(const std::string& what) {
  return Failure(ConnectError{Error{what + ": " + std::strerror(errno), "start xschedd"}, false});
}
Failure Refused(const std::string& what, const std::string& remedy) {
  return Failure(ConnectError{Error{what, remedy}, true});
}

// The agent tries again, because the program may close some.
Failure OutOfDescriptors() {
  return Refused("no file descriptor is left for the daemon's shared memory",
                 "raise the limit of open files (ulimit -n)");
}

// There is no common version of the shared memory. Only an installation changes that.
Failure OtherVersion(const PreambleWelcome& welcome) {
  const std::uint32_t ours = abi::Newest().version;
  std::string remedy = "install shim and daemon from one package";
  if (welcome.abi_version > ours) remedy = "install the shim of the daemon's release and start this program again";
  if (welcome.abi_version < ours) remedy = "install a daemon of this shim's release, " XSCHEDD_VERSION;
  const bool is_same = welcome.abi_version == ours;
  return Failure(ConnectError{
      Error{"the daemon is of another release: it uses version " + std::to_string(welcome.abi_version) +
                " of the shared memory, this shim " + abi::SpokenText() + (is_same ? " as it was published" : ""),
            remedy},
      true, true});
}

Failure RefusedBy(const PreambleWelcome& welcome) {
  switch (welcome.status) {
    case PreambleStatus::kVersionMismatch:
      return OtherVersion(welcome);
    case PreambleStatus::kQuota:
      return Refused("the daemon accepts no more clients of this user",
                     "end some, or raise the quota in its configuration");
    case PreambleStatus::kDraining:
      return Refused("the daemon accepts no new clients at the moment", "run xschedctl enable");
    case PreambleStatus::kNotVisible:
      return Refused("the daemon cannot see this process, which is outside its pid namespace",
                     "run xschedd in the host's pid namespace");
    default:
      return Refused("the daemon refused this client", "its log says why");
  }
}

// A socket that is connected to the daemon. Not valid, with the error in errno: there is none. `has_socket`: the system
// has a socket left.
UniqueFd OpenSocket(const sockaddr_un& address, bool* has_socket) {
  // Non-blocking from the start: gRPC needs that, and the full backlog of a stopped daemon must not block the agent.
  UniqueFd made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  *has_socket = made.IsValid();
  if (!*has_socket) return made;
  if (::connect(made.Get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    made.Reset();
    errno = error;
  }
  return made;
}

}  // namespace

tl::expected<Connection, ConnectError> ConnectToDaemon(int timeout_ms, HostDescriptor* eventfd, Session* before,
                                                       const Session* published, SessionPool* sessions) {
  const std::string path = ClientSocketPath(RuntimeDir());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Refused("the path of the daemon's socket is too long: " + path, "choose a shorter XSCHEDD_RUNTIME_DIR");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);

  bool has_socket = false;
  auto [socket, welcomed, layout] = GreetDaemon([&] { return OpenSocket(address, &has_socket); }, timeout_ms);
  if (!has_socket && (errno == EMFILE || errno == ENFILE)) return OutOfDescriptors();
  if (!has_socket)
    return Refused(std::string("cannot create a socket: ") + std::strerror(errno), "allow Unix sockets in its sandbox");
  if (!socket.IsValid()) return Unreachable("no daemon at " + path);
  if (!welcomed) return Unreachable("no answer from the daemon");
  auto& [welcome, descriptors] = *welcomed;
  if (std::memcmp(welcome.magic, kWelcomeMagic, sizeof welcome.magic) != 0) {
    return Refused("the program that listens at " + path + " is not xschedd", "check XSCHEDD_RUNTIME_DIR");
  }
  if (welcome.status != PreambleStatus::kOk) return RefusedBy(welcome);
  if (!descriptors[kPreambleDescriptors - 1].IsValid()) return OutOfDescriptors();

  std::string token(welcome.token, sizeof welcome.token);
  if (before != nullptr && before->IsBackedBy(descriptors[0].Get(), descriptors[1].Get())) {
    if (!eventfd->Set(std::move(descriptors[2]))) return OutOfDescriptors();
    before->Resume(eventfd->Get());
    return Connection{std::move(socket), std::move(token), before};
  }
  Result<Mapping> board = MapSharedMemory(descriptors[0].Get(), layout->board_bytes, Access::kReadOnly);
  if (!board) return Failure(ConnectError{board.error(), true});
  Result<Mapping> ledger = MapSharedMemory(descriptors[1].Get(), layout->ledger_bytes, Access::kReadWrite);
  if (!ledger) return Failure(ConnectError{ledger.error(), true});
  if (!eventfd->Set(std::move(descriptors[2]))) return OutOfDescriptors();
  const Result<Session*> session =
      sessions->Take(std::move(*board), std::move(*ledger), eventfd->Get(), *layout, published);
  if (!session) return Failure(ConnectError{session.error(), true});
  (*session)->SetBacking(descriptors[0].Get(), descriptors[1].Get());
  return Connection{std::move(socket), std::move(token), *session};
}

}  // namespace xschedd::shim
