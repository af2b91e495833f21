#include "daemon/connections/claim_sockets.h"

#include <dirent.h>
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "common/runtime_dir.h"

namespace xschedd {
namespace {

constexpr std::size_t kMaxNames = 4 * kMaxClaims;

// Opens a folder in `in`, or makes it, and sets its mode. Fails on a link, and on a folder of another user.
Result<UniqueFd> MakeFolder(int in, const std::string& name, mode_t mode) {
  if (::mkdirat(in, name.c_str(), mode) != 0 && errno != EEXIST) {
    return Fail("cannot make the folder " + name + " of claims' sockets: " + ErrnoText(), "run xschedd as root");
  }
  UniqueFd folder(::openat(in, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!folder.IsValid() || ::fstat(folder.Get(), &status) != 0) {
    return Fail("cannot open the folder " + name + " of claims' sockets: " + ErrnoText(), "remove what is there");
  }
  if (status.st_uid != ::geteuid()) return Fail("the folder " + name + " belongs to another user", "remove it");
  if (::fchmod(folder.Get(), mode) != 0) return Fail("cannot set the mode of " + name + ": " + ErrnoText());
  return folder;
}

// The names in a folder; at most kMaxNames, since a container may have filled it.
std::vector<std::string> NamesIn(int folder) {
  std::vector<std::string> names;
  DIR* const all = ::fdopendir(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (all == nullptr) return names;
  while (const dirent* const entry = names.size() < kMaxNames ? ::readdir(all) : nullptr) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(all);
  return names;
}

Result<UniqueFd> BindIn(int folder, const std::string& name) {
  // A container may have put anything here; only what can be unlinked is replaced.
  if (::unlinkat(folder, kClientSocketName, 0) != 0 && errno != ENOENT) {
    return Fail("cannot replace " + std::string(kClientSocketName) + " of claim \"" + name + "\": " + ErrnoText(),
                "remove what is there");
  }
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.IsValid()) return Fail("cannot make a socket: " + ErrnoText(), "raise LimitNOFILE");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Through the folder's descriptor: the path may be of any length, and may change meanwhile.
  const std::string path = "/proc/self/fd/" + std::to_string(folder) + "/" + kClientSocketName;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  // Any user of the container may connect; the folder above limits who reaches the socket.
  const mode_t before = ::umask(0111);
  const int bound = ::bind(fd.Get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int bind_error = errno;
  ::umask(before);
  if (bound != 0) {
    return Fail("cannot bind the socket of claim \"" + name + "\": " + std::strerror(bind_error),
                "remove what is in its folder");
  }
  if (::listen(fd.Get(), SOMAXCONN) != 0) return Fail("cannot listen for claim \"" + name + "\": " + ErrnoText());
  return fd;
}

}  // namespace

ClaimSockets::ClaimSockets(boost::asio::io_context& io, std::string runtime_dir, OnAccept on_accept)
    : io_(io), runtime_dir_(std::move(runtime_dir)), on_accept_(std::move(on_accept)), removal_(io) {}

Result<UniqueFd> ClaimSockets::OpenFolder() const {
  const UniqueFd runtime(::open(runtime_dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!runtime.IsValid()) return Fail("cannot open " + runtime_dir_ + ": " + ErrnoText());
  return MakeFolder(runtime.Get(), kClaimsFolderName, 0700);
}

Result<void> ClaimSockets::Open(const Claim& claim) {
  if (by_name_.contains(claim.name)) return {};
  const auto all = OpenFolder();
  if (!all) return tl::unexpected(all.error());
  const auto folder = MakeFolder(all->Get(), claim.name, 0755);
  if (!folder) return tl::unexpected(folder.error());
  auto fd = BindIn(folder->Get(), claim.name);
  if (!fd) return tl::unexpected(fd.error());
  Listening listening{std::move(*fd), nullptr};
  listening.acceptor = std::make_unique<Acceptor>(
      io_, listening.fd.Get(), [this, id = claim.id](UniqueFd socket) { on_accept_(std::move(socket), id); });
  if (is_started_) listening.acceptor->Start();
  open_.emplace(claim.id, std::move(listening));
  by_name_.emplace(claim.name, claim.id);
  return {};
}

void ClaimSockets::Close(const Claim& claim) {
  if (by_name_.erase(claim.name) == 0) return;
  const auto found = open_.find(claim.id);
  found->second.acceptor->Stop();
  open_.erase(found);
  Remove(claim.name);
}

void ClaimSockets::Remove(const std::string& name) const {
  const auto all = OpenFolder();
  if (!all) return;
  const UniqueFd folder(::openat(all->Get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.IsValid()) {
    for (const std::string& inside : NamesIn(folder.Get()))
      ::unlinkat(folder.Get(), inside.c_str(), 0);
  }
  if (::unlinkat(all->Get(), name.c_str(), folder.IsValid() ? AT_REMOVEDIR : 0) != 0) {
    SPDLOG_WARN("cannot remove the folder of a claim's socket name=\"{}\" error=\"{}\"", name, ErrnoText());
  }
}

void ClaimSockets::Start() {
  is_started_ = true;
  for (auto& [id, listening] : open_)
    listening.acceptor->Start();
  removal_.expires_after(kGrace);
  removal_.async_wait([this](const boost::system::error_code& error) {
    if (!error) RemoveUnclaimed();
  });
}

void ClaimSockets::RemoveUnclaimed() const {
  struct stat status {};
  if (::lstat((runtime_dir_ + "/" + kClaimsFolderName).c_str(), &status) != 0) return;
  const auto all = OpenFolder();
  if (!all) return SPDLOG_WARN("claims cannot have sockets error=\"{}\"", all.error().Line());
  for (const std::string& name : NamesIn(all->Get()))
    if (!by_name_.contains(name)) Remove(name);
}

void ClaimSockets::Stop() {
  removal_.cancel();
  for (auto& [id, listening] : open_)
    listening.acceptor->Stop();
}

}  // namespace xschedd
