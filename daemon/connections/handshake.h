// Reads the first bytes of a connection: distinguishes a shim ("XSH1") from a plain gRPC client, and answers a shim
// (preamble.h). Consumes nothing from a plain client. Thread rule: the daemon's one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <optional>

#include "common/preamble.h"
#include "common/result.h"
#include "common/unique_fd.h"
#include "daemon/registry/channel.h"

namespace xschedd {

struct FirstBytes {
  UniqueFd socket;
  std::optional<PreambleHello> hello;  // none: a plain gRPC client
};

// Waits at most `limit` for the first bytes of `socket` (non-blocking). `done` is called once, from the loop; after an
// error the socket is closed.
void AwaitFirstBytes(boost::asio::io_context& io, UniqueFd socket, std::chrono::milliseconds limit,
                     std::function<void(Result<FirstBytes>)> done);

// `channel`: null unless `status` is kOk. False: the peer is gone or does not read; the caller closes the socket.
bool SendWelcome(int socket, PreambleStatus status, const char (&token)[16], const Channel* channel);

}  // namespace xschedd
