// Every accepted connection: who is at the other end, by the kernel; its shared memory; its end.
//
// gRPC owns the socket once it has been adopted and names it "fd:N" in ServerContext::peer(); N is unique among live
// RPCs, because gRPC keeps the descriptor open until the last of them is done. This table maps N to the identity. We
// keep a duplicate of the socket, to shut it down and to learn when it is closed, and the pidfd, to learn when the
// process is dead although a forked child still holds the socket. Thread rule: the daemon's one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "daemon/ipc/handshake.h"
#include "daemon/registry/process.h"

namespace xschedd {

struct Connection {
  explicit Connection(boost::asio::io_context& io) : closed(io), dead(io), deadline(io) {}

  PeerIdentity peer;
  bool is_admin = false;             // accepted on admin.sock
  std::unique_ptr<Channel> channel;  // of a shim
  char token[16] = {};
  bool has_session = false;
  unsigned surplus_sessions = 0;  // opened beside it, and refused
  std::uint64_t client_id = 0;    // 0: no session has said hello yet

  int fd = -1;                                   // as gRPC calls it; gRPC's
  boost::asio::posix::stream_descriptor closed;  // duplicate of the socket
  boost::asio::posix::stream_descriptor dead;    // the pidfd
  boost::asio::steady_timer deadline;            // of the first session
};

class Connections {
 public:
  struct Callbacks {
    std::function<void(int fd)> adopt;      // hand the socket to gRPC
    std::function<void(Connection&)> gone;  // called once, before the connection is forgotten
    std::function<void(const std::string&)> refused;
  };
  Connections(boost::asio::io_context& io, Callbacks callbacks);

  void SetQuota(std::uint32_t connections_per_uid) { quota_ = connections_per_uid; }
  // New shims are refused with kDraining.
  void Drain() { draining_ = true; }

  // A fresh, non-blocking connection.
  void Accept(UniqueFd socket, bool is_admin);

  // "fd:N" as in ServerContext::peer(); null: closed already.
  std::shared_ptr<Connection> Find(const std::string& peer) const;

  // The session of this connection has ended or begun to misbehave: shuts the socket, forgets the connection.
  void Close(int fd);
  void CloseAll();
  std::uint64_t Total() const { return total_; }

 private:
  void OnFirstBytes(std::shared_ptr<Connection> connection, Result<FirstBytes> first);
  // Null token and channel for a plain client. False: refused; the socket closes.
  bool WelcomeShim(Connection& connection, int socket, const PreambleHello& hello);
  void Adopt(std::shared_ptr<Connection> connection, UniqueFd socket);
  void Refuse(const Connection& connection, const std::string& why);
  void CountDown(uid_t uid);

  boost::asio::io_context& io_;
  Callbacks callbacks_;
  std::map<int, std::shared_ptr<Connection>> open_;  // by gRPC's fd
  std::map<uid_t, std::uint32_t> per_uid_;           // open or in handshake
  std::uint32_t quota_ = 2048;
  std::uint64_t total_ = 0;
  bool draining_ = false;
  bool closing_ = false;
};

}  // namespace xschedd
