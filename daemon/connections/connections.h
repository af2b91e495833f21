// Every accepted connection: who is at the other end, according to the kernel; its shared memory; when it ends.
//
// gRPC gets one end of a socket pair, and a relay (socket_relay.h) carries the bytes between the other end and the
// client's socket. gRPC names its end "fd:N" in ServerContext::peer(); N is unique among live RPCs, because gRPC keeps
// the descriptor open until the last of them is done. This table maps N to the identity. The pidfd tells when the
// process is dead although a forked child still holds the socket.
//
// A peer that is refused (quotas, or a process that the daemon cannot see) is told why: a shim by the preamble's
// status, anybody else by the status of its first call. Thread rule: the daemon's one thread.
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
  uid_t owner = 0;                 // the user whose quotas apply (quotas.h)
  bool is_admin = false;           // accepted on admin.sock
  std::uint64_t claim_socket = 0;  // the id of the claim on whose socket it was accepted; 0: on another
  std::optional<uid_t> login_uid;
  // Not OK: the connection is only accepted to be refused, and every call ends with this.
  grpc::Status refusal;
  Quotas::Holding quota;
  std::set<std::string, std::less<>> refused_calls;  // that were logged already
  int calls = 0;                                     // of Admin, under way
  std::uint64_t last_call_ns = 0;
  std::unique_ptr<Channel> channel;  // of a shim
  std::uint64_t waiting_id = 0;      // of the client that has waited for this process since a restart; 0: none
  char token[16] = {};
  bool has_session = false;
  std::uint64_t client_id = 0;  // 0: no session has said hello yet

  int fd = -1;                                 // as gRPC calls it; gRPC's
  std::shared_ptr<SocketRelay> relay;          // null: not adopted yet
  boost::asio::posix::stream_descriptor dead;  // the pidfd
  boost::asio::steady_timer deadline;          // of the first session

  int PidFd() { return dead.native_handle(); }
  // What was sent made this much work, in ns of processor time (cost::).
  void Charge(std::uint64_t cost_ns) { relay->Charge(cost_ns); }
};

class Connections {
 public:
  struct Callbacks {
    std::function<void(int fd, bool is_admin)> adopt;  // hand gRPC its end
    std::function<void(Connection&)> gone;             // called once, before the connection is forgotten
    std::function<void(uid_t, const std::string&)> refused;
    // Gives a shim's connection its memory, of this layout.
    std::function<Result<void>(Connection&, const abi::Layout&)> equip;
    // It will not be adopted: the memory that it was given still belongs to the process.
    std::function<void(Connection&)> dropped;
  };
  // How long a connection may stay that says nothing, that nobody uses, and that was let in only to be told that it is
  // one too many.
  struct Limits {
    std::chrono::milliseconds first_bytes{5'000};
    std::chrono::milliseconds unused{10'000};
    std::chrono::milliseconds refused{2'000};
  };
  // `quotas` must outlive this.
  Connections(boost::asio::io_context& io, Quotas& quotas, Callbacks callbacks, const Limits& limits);
  Connections(boost::asio::io_context& io, Quotas& quotas, Callbacks callbacks);

  // False: new shims are refused with kDraining.
  void AcceptShims(bool takes) { accepts_shims_ = takes; }

  // A fresh, non-blocking connection.
  void Accept(UniqueFd socket, bool is_admin, std::uint64_t claim_socket = 0);

  // "fd:N" as in ServerContext::peer() of the server of this socket; null: closed already, or of the other socket.
  std::shared_ptr<Connection> Find(const std::string& peer, bool is_admin) const;

  // The session of this connection has ended or begun to misbehave: closes the socket, forgets the connection.
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
  // Null token and channel for a plain client. False: refused; the socket closes.
  bool WelcomeShim(Connection& connection, int socket, const PreambleHello& hello);
  void Adopt(const std::shared_ptr<Connection>& connection, UniqueFd socket);
  void StartRelay(const std::shared_ptr<Connection>& connection, UniqueFd socket, UniqueFd grpc);
  void AwaitUse(const std::shared_ptr<Connection>& connection);
  // Its fd number may belong to another connection by now.
  bool IsOpen(const Connection& connection) const;
  // An action that closes `connection`, unless it is closed or gone by then.
  std::function<void()> Ended(const std::shared_ptr<Connection>& connection);
  // How long this user's sessions must wait because they sent too much; 0: they need not.
  std::chrono::milliseconds PauseOf(uid_t uid);
  // Why the connection is refused; none: it is not.
  std::optional<Refusal> CheckPeer(Connection& connection);
  void Refuse(const Connection& connection, const std::string& why);
  void Forget(Connection& connection);

  boost::asio::io_context& io_;
  Quotas& quotas_;
  AdmissionControl admission_;
  Callbacks callbacks_;
  const Limits limits_;
  std::map<int, std::shared_ptr<Connection>> open_;  // by gRPC's fd
  std::map<uid_t, std::uint32_t> being_refused_;     // by owner: connections that wait to be told why
  std::uint64_t clients_open_ = 0;                   // accepted on client.sock, open or in handshake
  std::uint64_t capacity_;                           // of these
  std::uint64_t total_ = 0;
  bool accepts_shims_ = true;
  bool closing_ = false;
};

}  // namespace xschedd
