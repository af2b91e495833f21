// The sockets of claims (registry/claim.h): RUNTIME/claims/NAME/client.sock. An engine mounts the folder NAME into a
// container. A process that connects there belongs to the claim, whatever its uid, namespaces and cgroup. So only the
// daemon's user may enter RUNTIME/claims: a socket can be reached only through a folder that was mounted.
//
// A folder outlives the daemon. The next daemon makes the socket again in the same folder, where mounts show it. The
// end of the claim removes the folder. A folder without a claim stays for kGrace after a start: a daemon whose state
// nobody keeps (in a container, without systemd) has lost its claims, and the engine may put them again for containers
// that have the folder mounted. A container may do anything in its folder: no link there is followed, and anything that
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
  static constexpr std::chrono::minutes kGrace{1};
  using OnAccept = std::function<void(UniqueFd socket, std::uint64_t claim)>;
  ClaimSockets(boost::asio::io_context& io, std::string runtime_dir, OnAccept on_accept);

  // Does nothing if it is open already.
  Result<void> Open(const Claim& claim);
  // Removes its folder. Does nothing if it is not open.
  void Close(const Claim& claim);
  // Accepts connections from now on, and removes the folders without a claim after kGrace.
  void Start();
  // Accepts no more connections; sockets and folders stay.
  void Stop();
  void RemoveUnclaimed() const;

 private:
  struct Listening {
    UniqueFd fd;
    std::unique_ptr<Acceptor> acceptor;
  };

  // RUNTIME/claims, made if it is missing.
  Result<UniqueFd> OpenFolder() const;
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
