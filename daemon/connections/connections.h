// Every accepted connection: its peer according to the kernel, its shared memory, and its end.
//
// gRPC gets one end of a socket pair; a relay (socket_relay.h) carries the bytes between the other end and the client's
// socket. gRPC names its end "fd:N" in ServerContext::peer(). N is unique among live RPCs, because gRPC keeps the
// descriptor open until the last of them is done. This table maps N to the peer's identity. The pidfd shows that the
// process is dead even if a forked child still has the socket.
//
// A refused peer (over quota, or a process that the daemon cannot see) learns why: a shim by the preamble's status, any
// other client by the status of its first call. Thread rule: the daemon's one thread.
#pragma once

#include <grpcpp/support/status.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "daemon/connections/admission_control.h"
#include "daemon/connections/handshake.h"
#include "daemon/connections/quotas.h"
#include "daemon/connections/socket_relay.h"
#include "daemon/registry/process.h"

namespace xschedd {

struct Connection {
  explicit Connection(boost::asio::io_context& io) : dead(io), deadline(io) {}

  PeerIdentity peer;
  bool is_admin = false;  // accepted on admin.sock
  Origin origin;
  Principal who;    // the peer's uid, and its place when it connected: what the peer does counts for it
  Principal owner;  // the same, with the user whose quotas apply (quotas.h)
  std::optional<uid_t> login_uid;
  // If not OK, the connection stays open only to be refused: every call ends with this status.
  grpc::Status refusal;
  Quotas::Holding quota;
  std::set<std::string, std::less<>> refused_calls;  // already logged
  int calls = 0;                                     // to Admin, in progress
  std::uint64_t last_call_ns = 0;
  std::unique_ptr<Channel> channel;  // null: not a shim
  std::uint64_t waiting_id = 0;      // the returning client whose process this is; 0: none
  char token[16] = {};
  bool has_session = false;
  std::uint64_t client_id = 0;  // 0: no hello yet

  int fd = -1;                                 // gRPC's end, which gRPC owns and names
  std::shared_ptr<SocketRelay> relay;          // null until adopted
  boost::asio::posix::stream_descriptor dead;  // the pidfd
  boost::asio::steady_timer deadline;          // for the first session

  int PidFd() { return dead.native_handle(); }
  // Charges for work that the peer caused, in ns of processor time (cost::).
  void Charge(std::uint64_t cost_ns) { relay->Charge(cost_ns); }
};

class Connections {
 public:
  struct Callbacks {
    std::function<void(const Connection&)> adopt;  // gives gRPC its end, `fd`
    std::function<void(Connection&)> gone;         // called once, before the connection is removed
    std::function<void(const Principal&, const std::string&)> refused;
    // Gives a shim's connection its shared memory, in this layout.
    std::function<Result<void>(Connection&, const abi::Layout&)> equip;
    // The connection will not be adopted; the memory that it was given still belongs to the process.
    std::function<void(Connection&)> dropped;
    // Sets where the peer runs: `origin` (whose claim_socket is set already) and the place of `who`. If there is no
    // such function, peers count as on the host.
    std::function<void(Connection&)> locate = {};
  };
  // How long a connection may stay without sending anything, without being used, or open only to be refused.
  struct Limits {
    std::chrono::milliseconds first_bytes{5'000};
    std::chrono::milliseconds unused{10'000};
    std::chrono::milliseconds refused{2'000};
  };
  // `quotas` must outlive this.
  Connections(boost::asio::io_context& io, Quotas& quotas, Callbacks callbacks, const Limits& limits);
  Connections(boost::asio::io_context& io, Quotas& quotas, Callbacks callbacks);

  // If false, new shims are refused with kDraining.
  void AcceptShims(bool takes) { accepts_shims_ = takes; }

  // `socket` is fresh and non-blocking. `claim_socket`: as in Origin.
  void Accept(UniqueFd socket, bool is_admin, std::uint64_t claim_socket = 0);

  // `peer`: "fd:N", from ServerContext::peer(). Null: already closed, or accepted on the other socket.
  std::shared_ptr<Connection> Find(const std::string& peer, bool is_admin) const;

  // Closes the connection because its session ended or misbehaved, and forgets it.
  void Close(int fd);
  void CloseAll();
  std::uint64_t Total() const { return total_; }

 private:
  struct Refusal {
    PreambleStatus status;  // for a shim
    grpc::Status answer;    // for others
  };

  void OnFirstBytes(const std::shared_ptr<Connection>& connection, PreambleStatus status, Result<FirstBytes> first);
  void LetIn(const std::shared_ptr<Connection>& connection, PreambleStatus status, FirstBytes first);
  // False: refused; the caller closes the socket.
  bool WelcomeShim(Connection& connection, int socket, const PreambleHello& hello);
  void Adopt(const std::shared_ptr<Connection>& connection, UniqueFd socket);
  void StartRelay(const std::shared_ptr<Connection>& connection, UniqueFd socket, UniqueFd grpc);
  void AwaitUse(const std::shared_ptr<Connection>& connection);
  // Compares the object, because its fd number may have been reused.
  bool IsOpen(const Connection& connection) const;
  // Returns an action that closes `connection` if it is still open.
  std::function<void()> Ended(const std::shared_ptr<Connection>& connection);
  // How long sessions of `who` must pause because they sent too much; 0: not at all.
  std::chrono::milliseconds PauseOf(const Principal& who);
  // Why the connection is refused; none: it is accepted.
  std::optional<Refusal> CheckPeer(Connection& connection);
  // Whether another refused connection of this owner may stay open until it learns why.
  bool MayWaitForRefusal(const Principal& owner) const;
  void Refuse(const Connection& connection, const std::string& why);
  void Forget(Connection& connection);

  boost::asio::io_context& io_;
  Quotas& quotas_;
  AdmissionControl admission_;
  Callbacks callbacks_;
  const Limits limits_;
  std::map<int, std::shared_ptr<Connection>> open_;   // by gRPC's fd
  std::map<Principal, std::uint32_t> being_refused_;  // by owner: connections open only to be refused
  std::uint64_t clients_open_ = 0;                    // on client.sock, open or in handshake
  std::uint64_t capacity_;                            // the most of these
  std::uint64_t total_ = 0;
  bool accepts_shims_ = true;
  bool closing_ = false;
};

}  // namespace xschedd
