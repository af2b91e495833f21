// The client's half of the preamble (preamble.h), for the shim and for clients that are none.
// Thread rule: the thread that owns the socket.
#pragma once

#include <optional>

#include "common/preamble.h"
#include "common/unique_fd.h"

namespace xschedd {

struct Welcomed {
  PreambleWelcome welcome{};
  UniqueFd descriptors[kPreambleDescriptors];  // board, ledger, eventfd; valid only as far as they came
};

// The hello of this build.
PreambleHello MakeHello();

// Sends `hello` over a connected socket, blocking or not, and takes the answer with what is attached to it. None, with
// errno, if no whole answer came (ECONNRESET: the daemon closed) or it stopped coming for `timeout_ms`. Whether the
// answer is a welcome is for the caller to see.
std::optional<Welcomed> SayHello(int socket, const PreambleHello& hello, int timeout_ms);

}  // namespace xschedd
