// Makes the metrics socket if systemd passes none. Thread rule: the daemon's one thread.
#pragma once

#include <string>

#include "common/result.h"
#include "common/unique_fd.h"
#include "daemon/config/listen_address.h"

namespace xschedd {

// Returns a non-blocking, listening socket. A Unix socket is open to every local user, as loopback is, and replaces the
// socket of a dead daemon.
Result<UniqueFd> Listen(const ListenAddress& address);

// Where `socket` listens, in ListenAddress's notation, with the port that the kernel chose.
std::string ListensAt(int socket);

}  // namespace xschedd
