// The first bytes of a connection: tells a shim ("XSH1") from a plain gRPC client, and answers a shim (preamble.h).
// Nothing of a plain client's bytes is consumed. Thread rule: the daemon's one thread.
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
  std::optional<PreambleHello> hello;  // of a shim; none: a plain gRPC client
};

// Waits for the first bytes of `socket` (non-blocking), at most `limit`. `done` is called once, from the loop; after an
// error the socket is closed.
void AwaitFirstBytes(boost::asio::io_context& io, UniqueFd socket, std::chrono::milliseconds limit,
                     std::function<void(Result<FirstBytes>)> done);

// `channel`: for kOk, else null. False: the peer has gone or does not read; the caller closes.
bool SendWelcome(int socket, PreambleStatus status, const char (&token)[16], const Channel* channel);

}  // namespace xschedd
