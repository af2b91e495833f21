// Connects to the daemon, exchanges the preamble (common/preamble.h) and maps the memory that comes with it.
// Thread rule: the agent's thread.
#pragma once

#include <string>

#include "client-shim/core/host_descriptor.h"
#include "client-shim/core/session.h"
#include "common/unique_fd.h"

namespace xschedd::shim {

struct Connection {
  UniqueFd socket;  // non-blocking, ready for gRPC
  std::string token;
  Session* session = nullptr;
};

struct ConnectError {
  Error error;
  bool is_refusal = false;   // reported as a warning; trying again soon is of no use
  bool is_for_long = false;  // only an installation changes that
};

// Takes at most about `timeout_ms` for each of its steps. `eventfd` is set to the descriptor that wakes the daemon.
// `before`: the last session, which continues if the daemon sends the same memory again; may be null. `published`: as
// in SessionPool::Take.
tl::expected<Connection, ConnectError> ConnectToDaemon(int timeout_ms, HostDescriptor* eventfd, Session* before,
                                                       const Session* published, SessionPool* sessions);

}  // namespace xschedd::shim
