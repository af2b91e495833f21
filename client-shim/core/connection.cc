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

Failure Unreachable(const std::string& what) {
  return Failure(ConnectError{Error{what + ": " + std::strerror(errno), "start xschedd"}, false});
}
Failure Refused(const std::string& what, const std::string& remedy) {
  return Failure(ConnectError{Error{what, remedy}, true});
}

// Tried again all the same: the program may close some.
Failure OutOfDescriptors() {
  return Refused("no descriptor is left for the daemon's shared memory", "raise the limit of open files (ulimit -n)");
}

// No version in common. That changes with an installation, not by itself.
Failure OtherVersion(const PreambleWelcome& welcome) {
  const std::uint32_t ours = abi::Newest().version;
  std::string remedy = "install shim and daemon from one package";
  if (welcome.abi_version > ours) remedy = "install the shim of the daemon's release and start this program again";
  if (welcome.abi_version < ours) remedy = "install a daemon of this shim's release, " XSCHEDD_VERSION;
  const bool is_same = welcome.abi_version == ours;
  return Failure(ConnectError{Error{"the daemon is of another release: of the shared memory it speaks version " +
                                        std::to_string(welcome.abi_version) + ", this shim " + abi::SpokenText() +
                                        (is_same ? " as it was published" : ""),
                                    remedy},
                              true, true});
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
  auto [socket, welcomed, layout] = GreetDaemon(
      [&] {
        // Non-blocking from the start: gRPC wants it so, and a stopped daemon's full backlog must not block us.
        UniqueFd made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        has_socket = made.IsValid();
        if (!has_socket) return made;
        const bool is_connected =
            ::connect(made.Get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
        const int why = errno;
        if (!is_connected) made.Reset();
        errno = why;
        return made;
      },
      timeout_ms);
  if (!has_socket && (errno == EMFILE || errno == ENFILE)) return OutOfDescriptors();
  if (!has_socket) return Refused(std::string("cannot make a socket: ") + std::strerror(errno), "allow it");
  if (!socket.IsValid()) return Unreachable("no daemon at " + path);
  if (!welcomed) return Unreachable("no answer from the daemon");
  auto& [welcome, descriptors] = *welcomed;
  if (std::memcmp(welcome.magic, kWelcomeMagic, sizeof welcome.magic) != 0) {
    return Refused("whatever listens at " + path + " is no xschedd", "check XSCHEDD_RUNTIME_DIR");
  }
  switch (welcome.status) {
    case PreambleStatus::kOk:
      break;
    case PreambleStatus::kVersionMismatch:
      return OtherVersion(welcome);
    case PreambleStatus::kQuota:
      return Refused("the daemon takes no more clients of this user",
                     "end some, or raise the quota in its configuration");
    case PreambleStatus::kDraining:
      return Refused("the daemon takes no new clients at the moment", "xschedctl enable ends that");
    case PreambleStatus::kNotVisible:
      return Refused("the daemon cannot see this process, which is outside its pid namespace",
                     "run xschedd in the host's pid namespace");
    default:
      return Refused("the daemon refused this client", "its log says why");
  }
  if (!descriptors[kPreambleDescriptors - 1].IsValid()) {
    return OutOfDescriptors();
  }

  std::string token(welcome.token, sizeof welcome.token);
  if (before != nullptr && before->IsIn(descriptors[0].Get(), descriptors[1].Get())) {
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
  (*session)->SetMemory(descriptors[0].Get(), descriptors[1].Get());
  return Connection{std::move(socket), std::move(token), *session};
}

}  // namespace xschedd::shim
