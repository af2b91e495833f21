#include "daemon/connections/connections.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "common/clock.h"
#include "common/parse_number.h"
#include "daemon/connections/await_end.h"
#include "daemon/registry/limits.h"

namespace xschedd {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// How many refused connections stay open to learn why: of one user on the host or in one place, and of all places of a
// user together.
constexpr std::uint32_t kBeingRefused = 16;
constexpr std::uint32_t kBeingRefusedOfUser = 4 * kBeingRefused;
// The client's socket, a socket pair, a pidfd, an eventfd, two memory files (until they are sent, or as long as they
// are kept for a restart), and one spare.
constexpr std::uint64_t kDescriptorsEach = 8;
constexpr std::uint64_t kDescriptorsKept = 256;  // for administrators and the daemon itself

// How many connections this process has descriptors for. Linux refuses an unlimited RLIMIT_NOFILE (fs.nr_open).
std::uint64_t Capacity() {
  rlimit all{};
  ::getrlimit(RLIMIT_NOFILE, &all);
  const std::uint64_t fit = (all.rlim_cur - std::min(all.rlim_cur / 2, kDescriptorsKept)) / kDescriptorsEach;
  return std::clamp<std::uint64_t>(fit, 2, kMaxClients);
}

std::string MismatchText(const PreambleHello& hello) {
  const std::uint32_t newest = abi::Newest().version;
  const std::string theirs = std::to_string(hello.abi_version);
  if (hello.abi_version > newest) {
    return "it speaks version " + theirs + " of the shared memory, this daemon " + abi::SpokenText() +
           "; install a daemon of its shim's release";
  }
  if (hello.abi_version < abi::Spoken().front().version) {
    return "it speaks at most version " + theirs + " of the shared memory, this daemon " + abi::SpokenText() +
           "; install the shim of this daemon's release and start the program again";
  }
  return "its version " + theirs +
         " of the shared memory differs from the released one; install shim and daemon of one release";
}

}  // namespace

Connections::Connections(asio::io_context& io, Quotas& quotas, Callbacks callbacks, const Limits& limits)
    : io_(io),
      quotas_(quotas),
      admission_(io),
      callbacks_(std::move(callbacks)),
      limits_(limits),
      capacity_(Capacity()) {
  quotas_.SetCapacity(capacity_);
}

Connections::Connections(asio::io_context& io, Quotas& quotas, Callbacks callbacks)
    : Connections(io, quotas, std::move(callbacks), Limits{}) {}

void Connections::Accept(UniqueFd socket, bool is_admin, std::uint64_t claim_socket) {
  ++total_;
  auto connection = std::make_shared<Connection>(io_);
  connection->is_admin = is_admin;
  connection->origin.claim_socket = claim_socket;
  auto peer = ReadPeer(socket.Get());
  if (!peer) {
    SPDLOG_DEBUG("connection dropped reason=\"{}\"", peer.error().Line());
    return;
  }
  connection->peer = std::move(*peer);
  connection->who.uid = connection->peer.uid;
  // Not for a user that is refused anyway: constant connecting must cost the daemon little.
  const bool is_welcome = is_admin || quotas_.Has(connection->peer.uid, QuotaKind::kConnects, MonotonicNs());
  if (callbacks_.locate && connection->peer.pid > 0 && is_welcome) callbacks_.locate(*connection);
  connection->owner = quotas_.OwnerOf(connection->who);
  connection->login_uid = ReadLoginUid(connection->peer.pid);
  // CheckPeer never refuses an administrator, who must get in when others have used everything up.
  PreambleStatus status = PreambleStatus::kOk;
  if (auto refusal = CheckPeer(*connection)) {
    Refuse(*connection, refusal->answer.error_message());
    status = refusal->status;
    connection->refusal = std::move(refusal->answer);
    if (!MayWaitForRefusal(connection->owner) || clients_open_ >= capacity_) {
      // Only a shim understands this answer; a plain gRPC client just sees the connection close.
      SendWelcome(socket.Get(), status, connection->token, nullptr);
      return;
    }
    // The map has only owners with a refused connection open.
    ++being_refused_[connection->owner];
  }
  if (!is_admin) ++clients_open_;
  AwaitFirstBytes(
      io_, std::move(socket), connection->refusal.ok() ? limits_.first_bytes : limits_.refused,
      [this, connection, status](Result<FirstBytes> first) { OnFirstBytes(connection, status, std::move(first)); });
}

bool Connections::MayWaitForRefusal(const Principal& owner) const {
  std::uint32_t of_user = 0;
  for (auto i = being_refused_.lower_bound(owner.uid); i != being_refused_.end() && i->first.uid == owner.uid; ++i) {
    if (i->first == owner && i->second >= kBeingRefused) return false;
    of_user += i->second;
  }
  return of_user < kBeingRefusedOfUser;
}

std::optional<Connections::Refusal> Connections::CheckPeer(Connection& connection) {
  const PeerIdentity& peer = connection.peer;
  if (connection.is_admin) return std::nullopt;
  if (peer.pid <= 0) {
    return Refusal{PreambleStatus::kNotVisible,
                   {grpc::StatusCode::FAILED_PRECONDITION,
                    "xschedd cannot see this process, which is outside its pid namespace; run xschedd in the host's "
                    "pid namespace"}};
  }
  const auto refuse = [](const std::string& why) {
    return Refusal{PreambleStatus::kQuota, {grpc::StatusCode::RESOURCE_EXHAUSTED, why}};
  };
  if (!quotas_.Has(connection.who, QuotaKind::kConnects, MonotonicNs())) {
    quotas_.CountRefusal(QuotaKind::kConnects);
    return refuse(quotas_.Reason(connection.who, QuotaKind::kConnects));
  }
  quotas_.Charge(connection.who, QuotaKind::kConnects, 1);
  connection.quota = Quotas::Holding(quotas_, connection.who, QuotaKind::kConnections);
  if (!connection.quota.Add()) return refuse(quotas_.Reason(connection.who, QuotaKind::kConnections));
  if (clients_open_ < capacity_) return std::nullopt;
  connection.quota.Reset();
  quotas_.CountRefusal(QuotaKind::kConnections);
  return refuse("xschedd has " + std::to_string(clients_open_) +
                " connections of all users, the most that its descriptors allow; raise LimitNOFILE in xschedd.service");
}

void Connections::OnFirstBytes(const std::shared_ptr<Connection>& connection, PreambleStatus status,
                               Result<FirstBytes> first) {
  if (!first || closing_) {
    if (!first) {
      SPDLOG_DEBUG("connection dropped pid={} uid={} reason=\"{}\"", connection->peer.pid, connection->peer.uid,
                   first.error().Line());
    }
    return Forget(*connection);
  }
  if (connection->is_admin) return LetIn(connection, status, std::move(*first));
  // Shared, because std::function must be copyable.
  admission_.Await(
      connection->owner,
      [this, connection, status, first = std::make_shared<FirstBytes>(std::move(*first))]() -> std::uint64_t {
        LetIn(connection, status, std::move(*first));
        return cost::kConnectNs;
      });
}

void Connections::LetIn(const std::shared_ptr<Connection>& connection, PreambleStatus status, FirstBytes first) {
  if (first.hello) {
    const int socket = first.socket.Get();
    if (status != PreambleStatus::kOk) SendWelcome(socket, status, connection->token, nullptr);
    if (status != PreambleStatus::kOk || !WelcomeShim(*connection, socket, *first.hello)) return Forget(*connection);
  }
  Adopt(connection, std::move(first.socket));
}

bool Connections::WelcomeShim(Connection& connection, int socket, const PreambleHello& hello) {
  if (!accepts_shims_) {
    SendWelcome(socket, PreambleStatus::kDraining, connection.token, nullptr);
    Refuse(connection, "the daemon is disabled");
    return false;
  }
  const abi::Layout* const layout = abi::FindSpoken(hello.abi_version, hello.layout_hash);
  if (layout == nullptr) {
    SendWelcome(socket, PreambleStatus::kVersionMismatch, connection.token, nullptr);
    if (hello.abi_version == abi::Newest().version + 1) {
      // The next release also speaks our version, and retries with it.
      SPDLOG_DEBUG("newer client asked to retry with our version pid={} its={} ours={}", connection.peer.pid,
                   hello.abi_version, abi::Newest().version);
    } else {
      Refuse(connection, MismatchText(hello));
    }
    return false;
  }
  if (const auto equipped = callbacks_.equip(connection, *layout); !equipped) {
    SendWelcome(socket, PreambleStatus::kQuota, connection.token, nullptr);
    Refuse(connection, equipped.error().Line());
    return false;
  }
  // The token is a check, not a secret: zeros will do on a kernel without getrandom, which never cuts so few bytes
  // short.
  [[maybe_unused]] const ssize_t filled = ::getrandom(connection.token, sizeof connection.token, 0);
  const bool sent = SendWelcome(socket, PreambleStatus::kOk, connection.token, connection.channel.get());
  // A lasting channel keeps its descriptors until its client is added, when they are stored.
  if (!connection.channel->IsLasting()) connection.channel->ForgetDescriptors();
  if (!sent) callbacks_.dropped(connection);
  return sent;
}

void Connections::Adopt(const std::shared_ptr<Connection>& connection, UniqueFd socket) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
    Refuse(*connection, "xschedd has no descriptor left; raise LimitNOFILE in xschedd.service");
    callbacks_.dropped(*connection);
    return Forget(*connection);
  }
  const int fd = pair[0];
  // gRPC closes descriptors on its own threads, so the kernel may reuse a number before we hear of the end.
  if (open_.contains(fd)) Close(fd);
  connection->fd = fd;
  if (connection->peer.pidfd.IsValid()) connection->dead.assign(connection->peer.pidfd.Release());
  open_.emplace(fd, connection);
  if (connection->dead.is_open()) {
    AwaitExit(connection->dead, connection, [ended = Ended(connection)](const error_code& error) {
      if (!error) ended();
    });
  }
  if (!connection->is_admin) AwaitUse(connection);
  StartRelay(connection, std::move(socket), UniqueFd(pair[1]));
  callbacks_.adopt(*connection);
}

void Connections::StartRelay(const std::shared_ptr<Connection>& connection, UniqueFd socket, UniqueFd grpc) {
  SocketRelay::Callbacks callbacks;
  callbacks.ended = Ended(connection);
  callbacks.pause = [this, who = connection->who] { return PauseOf(who); };
  connection->relay = std::make_shared<SocketRelay>(io_, std::move(socket), std::move(grpc),
                                                    connection->is_admin ? nullptr : &admission_, connection->owner,
                                                    std::move(callbacks));
  connection->relay->Start();
}

std::chrono::milliseconds Connections::PauseOf(const Principal& who) {
  const std::uint64_t now = MonotonicNs();
  const bool may_send = quotas_.Has(who, QuotaKind::kMessages, now) && quotas_.Has(who, QuotaKind::kMessageBytes, now);
  return may_send ? std::chrono::milliseconds(0) : quotas_.Pause(who);
}

// Closes a connection without a session once it has made no calls for a while.
void Connections::AwaitUse(const std::shared_ptr<Connection>& connection) {
  const bool is_refused = !connection->refusal.ok();
  connection->deadline.expires_after(is_refused ? limits_.refused : limits_.unused);
  connection->deadline.async_wait([this, weak = std::weak_ptr(connection)](const error_code& error) {
    const auto still = weak.lock();
    if (error || still == nullptr || still->has_session) return;
    if (!IsOpen(*still)) return;
    const auto limit = std::chrono::nanoseconds(still->refusal.ok() ? limits_.unused : limits_.refused).count();
    const bool is_used = still->calls != 0 || still->last_call_ns + static_cast<std::uint64_t>(limit) > MonotonicNs();
    if (is_used && still->refusal.ok()) return AwaitUse(still);
    Close(still->fd);
  });
}

void Connections::Close(int fd) {
  const auto found = open_.find(fd);
  if (found == open_.end()) return;
  const std::shared_ptr<Connection> connection = found->second;
  open_.erase(found);
  callbacks_.gone(*connection);
  // gRPC then sees the end of the stream and closes its descriptor.
  connection->relay->Stop();
  CloseForGood(connection->dead);
  connection->deadline.cancel();
  Forget(*connection);
}

bool Connections::IsOpen(const Connection& connection) const {
  const auto found = open_.find(connection.fd);
  return found != open_.end() && found->second.get() == &connection;
}

std::function<void()> Connections::Ended(const std::shared_ptr<Connection>& connection) {
  return [this, weak = std::weak_ptr(connection)] {
    const auto still = weak.lock();
    if (still != nullptr && IsOpen(*still)) Close(still->fd);
  };
}

void Connections::CloseAll() {
  closing_ = true;
  admission_.Stop();
  while (!open_.empty())
    Close(open_.begin()->first);
}

std::shared_ptr<Connection> Connections::Find(const std::string& peer, bool is_admin) const {
  constexpr std::string_view kPrefix = "fd:";
  if (!peer.starts_with(kPrefix)) return nullptr;
  const auto fd = ParseNumber<int>(std::string_view(peer).substr(kPrefix.size()));
  if (!fd) return nullptr;
  const auto found = open_.find(*fd);
  return found == open_.end() || found->second->is_admin != is_admin ? nullptr : found->second;
}

void Connections::Refuse(const Connection& connection, const std::string& why) {
  callbacks_.refused(connection.who, ProcessText(static_cast<std::uint64_t>(connection.peer.pid), connection.peer.uid) +
                                         " was refused: " + why);
}

void Connections::Forget(Connection& connection) {
  connection.quota.Reset();
  if (!connection.is_admin) --clients_open_;
  if (connection.refusal.ok()) return;
  const auto found = being_refused_.find(connection.owner);
  if (--found->second == 0) being_refused_.erase(found);
}

}  // namespace xschedd
