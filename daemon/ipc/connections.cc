#include "daemon/ipc/connections.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

namespace xschedd {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::milliseconds kFirstBytesLimit{5'000};
constexpr std::chrono::milliseconds kFirstSessionLimit{10'000};

}  // namespace

Connections::Connections(asio::io_context& io, Callbacks callbacks) : io_(io), callbacks_(std::move(callbacks)) {}

void Connections::Accept(UniqueFd socket, bool is_admin) {
  ++total_;
  auto connection = std::make_shared<Connection>(io_);
  connection->is_admin = is_admin;
  auto peer = ReadPeer(socket.Get());
  if (!peer) {
    SPDLOG_DEBUG("connection dropped reason=\"{}\"", peer.error().Line());
    return;
  }
  connection->peer = std::move(*peer);
  std::uint32_t& count = per_uid_[connection->peer.uid];
  // An administrator must get in when the others have used everything up.
  if (count >= quota_ && !is_admin) {
    // Only a shim knows what to do with this; a plain gRPC client sees the end of the connection.
    SendWelcome(socket.Get(), PreambleStatus::kQuota, connection->token, nullptr);
    return Refuse(*connection, "it has " + std::to_string(count) + " connections, as many as it may");
  }
  ++count;
  AwaitFirstBytes(io_, std::move(socket), kFirstBytesLimit,
                  [this, connection](Result<FirstBytes> first) { OnFirstBytes(connection, std::move(first)); });
}

void Connections::OnFirstBytes(std::shared_ptr<Connection> connection, Result<FirstBytes> first) {
  const uid_t uid = connection->peer.uid;
  if (!first || closing_) {
    if (!first)
      SPDLOG_DEBUG("connection dropped pid={} uid={} reason=\"{}\"", connection->peer.pid, uid, first.error().Line());
    return CountDown(uid);
  }
  if (first->hello && !WelcomeShim(*connection, first->socket.Get(), *first->hello)) return CountDown(uid);
  Adopt(std::move(connection), std::move(first->socket));
}

bool Connections::WelcomeShim(Connection& connection, int socket, const PreambleHello& hello) {
  if (draining_) {
    SendWelcome(socket, PreambleStatus::kDraining, connection.token, nullptr);
    Refuse(connection, "the daemon drains");
    return false;
  }
  if (hello.abi_version != abi::kVersion || hello.layout_hash != abi::kLayoutHash) {
    SendWelcome(socket, PreambleStatus::kVersionMismatch, connection.token, nullptr);
    Refuse(connection, "its shared-memory layout has version " + std::to_string(hello.abi_version) + ", ours " +
                           std::to_string(abi::kVersion) + "; install shim and daemon of one release");
    return false;
  }
  if (const auto equipped = callbacks_.equip(connection); !equipped) {
    SendWelcome(socket, PreambleStatus::kQuota, connection.token, nullptr);
    Refuse(connection, equipped.error().Line());
    return false;
  }
  if (::getrandom(connection.token, sizeof connection.token, 0) != static_cast<ssize_t>(sizeof connection.token)) {
    std::memset(connection.token, 0, sizeof connection.token);  // an assertion, not a secret
  }
  const bool sent = SendWelcome(socket, PreambleStatus::kOk, connection.token, connection.channel.get());
  // A lasting one's are stored when its client is listed.
  if (!connection.channel->IsLasting()) connection.channel->ForgetDescriptors();
  if (!sent) callbacks_.dropped(connection);
  return sent;
}

void Connections::Adopt(std::shared_ptr<Connection> connection, UniqueFd socket) {
  const int fd = socket.Get();
  // gRPC closes descriptors on its own threads, so the kernel may give a number out again before we heard of the end.
  if (open_.contains(fd)) Close(fd);
  const int duplicate = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0) {
    Refuse(*connection, "no descriptor is left; raise LimitNOFILE");
    callbacks_.dropped(*connection);
    return CountDown(connection->peer.uid);
  }
  connection->fd = fd;
  connection->closed.assign(duplicate);
  connection->dead.assign(connection->peer.pidfd.Release());
  open_.emplace(fd, connection);

  const auto end = [this, fd, weak = std::weak_ptr(connection)](const error_code& error) {
    const auto still = weak.lock();
    const auto found = open_.find(fd);
    if (!error && still != nullptr && found != open_.end() && found->second == still) Close(fd);
  };
  // "error" is a hang-up here: the peer has closed, or gRPC has. Reading is gRPC's.
  connection->closed.async_wait(asio::posix::stream_descriptor::wait_error, end);
  connection->dead.async_wait(asio::posix::stream_descriptor::wait_read, end);
  if (!connection->is_admin) {
    connection->deadline.expires_after(kFirstSessionLimit);
    connection->deadline.async_wait([end, weak = std::weak_ptr(connection)](const error_code& error) {
      const auto still = weak.lock();
      if (still != nullptr && !still->has_session) end(error);
    });
  }
  callbacks_.adopt(socket.Release());
}

void Connections::Close(int fd) {
  const auto found = open_.find(fd);
  if (found == open_.end()) return;
  const std::shared_ptr<Connection> connection = found->second;
  open_.erase(found);
  callbacks_.gone(*connection);
  // gRPC sees the end of the stream and closes its descriptor.
  ::shutdown(connection->closed.native_handle(), SHUT_RDWR);
  error_code ignored;
  connection->closed.close(ignored);
  connection->dead.close(ignored);
  connection->deadline.cancel();
  CountDown(connection->peer.uid);
}

void Connections::CloseAll() {
  closing_ = true;
  while (!open_.empty())
    Close(open_.begin()->first);
}

std::shared_ptr<Connection> Connections::Find(const std::string& peer) const {
  constexpr std::string_view kPrefix = "fd:";
  int fd = -1;
  if (peer.rfind(kPrefix, 0) != 0) return nullptr;
  const auto [end, error] = std::from_chars(peer.data() + kPrefix.size(), peer.data() + peer.size(), fd);
  if (error != std::errc() || end != peer.data() + peer.size()) return nullptr;
  const auto found = open_.find(fd);
  return found == open_.end() ? nullptr : found->second;
}

void Connections::Refuse(const Connection& connection, const std::string& why) {
  callbacks_.refused("pid " + std::to_string(connection.peer.pid) + " (uid " + std::to_string(connection.peer.uid) +
                     ") was refused: " + why);
}

void Connections::CountDown(uid_t uid) {
  const auto found = per_uid_.find(uid);
  if (--found->second == 0) per_uid_.erase(found);
}

}  // namespace xschedd
