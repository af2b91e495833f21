// The sockets of claims (registry/claim.h): RUNTIME/claims/NAME/client.sock, whose folder is mounted into a container.
// Who connects there is that claim's, whatever its uid, namespaces and cgroup. So the folder RUNTIME/claims is open to
// the daemon's user alone: who has not been given one of the folders in it cannot reach a socket.
//
// A folder stays when the daemon ends, and the next one makes the socket again in the same folder: a mount of it shows
// that. It goes with its claim. One without a claim stays for a minute after a start: a daemon that nobody keeps the
// state for (in a container, without systemd) has lost its claims, and the engine may put them again, for containers
// that have the folder mounted. A container may have done anything in its folder: nothing there is followed, and what
// is not a socket is an error of that claim. Thread rule: the daemon's one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/result.h"
#include "common/unique_fd.h"
#include "daemon/connections/acceptor.h"
#include "daemon/registry/claim.h"

namespace xschedd {

class ClaimSockets {
 public:
  static constexpr std::chrono::minutes kPatience{1};
  using OnAccept = std::function<void(UniqueFd socket, std::uint64_t claim)>;
  ClaimSockets(boost::asio::io_context& io, std::string runtime_dir, OnAccept on_accept);

  // Nothing is changed where it is open already.
  Result<void> Open(const Claim& claim);
  // Removes its folder. It may not be open.
  void Close(const Claim& claim);
  // Connections are taken from here on. Folders of claims that are not open then are removed after kPatience.
  void Start();
  // None are; everything stays as it is.
  void Stop();
  void RemoveUnclaimed() const;

 private:
  struct Listening {
    UniqueFd fd;
    std::unique_ptr<Acceptor> acceptor;
  };

  // The folder with all of them, made where it is not there.
  Result<UniqueFd> OpenAll() const;
  void Remove(const std::string& name) const;

  boost::asio::io_context& io_;
  std::string runtime_dir_;
  OnAccept on_accept_;
  std::map<std::uint64_t, Listening> open_;  // by claim
  std::map<std::string, std::uint64_t> by_name_;
  bool is_started_ = false;
  boost::asio::steady_timer removal_;
};

}  // namespace xschedd
