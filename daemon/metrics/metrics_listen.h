// The socket on which metrics are served, where the daemon makes it itself. Thread rule: the daemon's one thread.
#pragma once

#include <string>

#include "common/result.h"
#include "common/unique_fd.h"
#include "daemon/config/listen_address.h"

namespace xschedd {

// Non-blocking, listening. A Unix socket is open to every local user, as loopback is; one that a dead daemon has left
// is replaced.
Result<UniqueFd> Listen(const ListenAddress& address);

// Where `socket` listens, as ListenAddress is written: with the port that the kernel chose.
std::string ListensAt(int socket);

}  // namespace xschedd
