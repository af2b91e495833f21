#include "daemon/connections/sockets.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/runtime_dir.h"

namespace xschedd {
namespace {

bool IsStream(int fd, bool may_be_tcp) {
  // Both calls fail on anything but a socket, and leave these values.
  int domain = AF_UNSPEC;
  int type = 0;
  socklen_t size = sizeof domain;
  ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
  ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
  const bool is_known = domain == AF_UNIX || (may_be_tcp && (domain == AF_INET || domain == AF_INET6));
  return is_known && type == SOCK_STREAM;
}

// Removes the socket or link of a dead daemon: nobody listens there, since we hold the lock.
Result<void> RemoveStaleSocket(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  if (!S_ISSOCK(status.st_mode) && !S_ISLNK(status.st_mode)) {
    return Fail(path + " exists and is not a socket", "move it away");
  }
  ::unlink(path.c_str());
  return {};
}

// Every user may enter a folder that is made here, whatever the umask.
Result<void> MakeFolder(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0 ? ::chmod(path.c_str(), 0755) == 0 : errno == EEXIST) return {};
  return Fail("cannot make the folder " + path + ": " + ErrnoText(), "run as root, or give --runtime-dir");
}

Result<UniqueFd> Bind(const std::string& path, mode_t mode, const group* owner) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Fail("the socket path " + path + " is longer than 107 bytes", "choose a shorter --runtime-dir");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.IsValid()) return Fail("cannot make a socket: " + ErrnoText(), "raise LimitNOFILE");
  if (const auto removed = RemoveStaleSocket(path); !removed) return tl::unexpected(removed.error());
  // Nobody may connect before the mode is set.
  const mode_t before = ::umask(0177);
  const int bound = ::bind(fd.Get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int bind_error = errno;
  ::umask(before);
  if (bound != 0) {
    return Fail("cannot bind " + path + ": " + std::strerror(bind_error), "check the permissions of the folder");
  }
  const bool owned = owner == nullptr || ::chown(path.c_str(), static_cast<uid_t>(-1), owner->gr_gid) == 0;
  if (!owned || ::chmod(path.c_str(), mode) != 0) {
    return Fail("cannot set the mode of " + path + ": " + ErrnoText(), "check the permissions of the folder");
  }
  if (::listen(fd.Get(), SOMAXCONN) != 0) return Fail("cannot listen on " + path + ": " + ErrnoText());
  return fd;
}

// Binds the clients' socket in its own folder, and makes the link to it.
Result<UniqueFd> BindClient(const std::string& runtime_dir, mode_t mode) {
  const std::string folder = ClientFolder(runtime_dir);
  if (const auto made = MakeFolder(folder); !made) return tl::unexpected(made.error());
  auto bound = Bind(ClientSocketPath(folder), mode, nullptr);
  if (!bound) return bound;
  const std::string link = ClientSocketPath(runtime_dir);
  if (const auto removed = RemoveStaleSocket(link); !removed) return tl::unexpected(removed.error());
  // Relative, so that it also works where the runtime folder is mounted elsewhere.
  if (::symlink(ClientSocketPath(kClientFolderName).c_str(), link.c_str()) != 0) {
    return Fail("cannot make the link " + link + ": " + ErrnoText(), "check the permissions of the folder");
  }
  return bound;
}

// Takes the listening sockets, named by FileDescriptorName in the .socket units, out of `passed`; what is left there
// was stored by an earlier daemon.
Result<bool> TakeSockets(std::vector<PassedDescriptor>& passed, UniqueFd& client, UniqueFd& admin, UniqueFd& metrics) {
  for (PassedDescriptor& one : passed) {
    const bool is_client = one.name == "client";
    const bool is_metrics = one.name == "metrics";
    const bool is_known = is_client || is_metrics || one.name == "admin";
    int listens = 0;
    socklen_t size = sizeof listens;
    // A stored descriptor never listens.
    const bool is_listening = ::getsockopt(one.fd.Get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens;
    if (!is_known && !is_listening) continue;
    UniqueFd& place = is_client ? client : is_metrics ? metrics : admin;
    if (!is_known || place.IsValid() || !IsStream(one.fd.Get(), is_metrics) || !is_listening) {
      return Fail("systemd passed the unexpected socket \"" + one.name + "\"",
                  "name one listening Unix stream socket \"client\" and one \"admin\" by FileDescriptorName=; a third, "
                  "\"metrics\", may be a TCP socket");
    }
    ::fcntl(one.fd.Get(), F_SETFL, O_NONBLOCK);
    place = std::move(one.fd);
  }
  std::erase_if(passed, [](const PassedDescriptor& one) { return !one.fd.IsValid(); });
  if (client.IsValid() != admin.IsValid()) {
    return Fail("systemd passed only one of the sockets \"client\" and \"admin\"", "enable both socket units");
  }
  return client.IsValid();
}

}  // namespace

Result<ListeningSockets> ListeningSockets::Open(const std::string& runtime_dir, std::vector<PassedDescriptor>& passed) {
  ListeningSockets sockets;
  sockets.runtime_dir_ = runtime_dir;
  if (const auto made = MakeFolder(runtime_dir); !made) return tl::unexpected(made.error());
  const std::string lock_path = runtime_dir + "/lock";
  sockets.lock_.Reset(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!sockets.lock_.IsValid()) {
    return Fail("cannot open " + lock_path + ": " + ErrnoText(), "run as root, or give --runtime-dir");
  }
  if (::flock(sockets.lock_.Get(), LOCK_EX | LOCK_NB) != 0) {
    return Fail("another xschedd serves " + runtime_dir, "stop it first, or give another --runtime-dir");
  }
  const auto from_systemd = TakeSockets(passed, sockets.client_, sockets.admin_, sockets.metrics_);
  if (!from_systemd) return tl::unexpected(from_systemd.error());
  if (*from_systemd) return sockets;

  const bool is_root = ::geteuid() == 0;
  auto client = BindClient(runtime_dir, is_root ? 0666 : 0600);
  if (!client) return tl::unexpected(client.error());
  sockets.client_ = std::move(*client);
  auto admin = Bind(AdminSocketPath(runtime_dir), is_root ? 0660 : 0600, is_root ? ::getgrnam("xschedd") : nullptr);
  if (!admin) return tl::unexpected(admin.error());
  sockets.admin_ = std::move(*admin);
  sockets.made_files_ = true;
  return sockets;
}

void ListeningSockets::Remove() {
  if (!made_files_) return;
  ::unlink(ClientSocketPath(runtime_dir_).c_str());
  ::unlink(ClientSocketPath(ClientFolder(runtime_dir_)).c_str());
  ::unlink(AdminSocketPath(runtime_dir_).c_str());
  made_files_ = false;
}

}  // namespace xschedd
