// The client's half of the preamble (preamble.h), for the shim and for other clients.
// Thread rule: the thread that owns the socket.
#pragma once

#include <array>
#include <functional>
#include <optional>

#include "common/preamble.h"
#include "common/unique_fd.h"
#include "common/versions.h"

namespace xschedd {

struct Welcomed {
  PreambleWelcome welcome{};
  std::array<UniqueFd, kPreambleDescriptors> descriptors;  // board, ledger, eventfd; invalid: not received
};

// The hello that asks for `layout`.
PreambleHello MakeHello(const abi::Layout& layout = abi::Newest());

// Sends `hello` over a connected socket, blocking or not, and receives the answer with its descriptors. None, with
// errno, if the answer is incomplete (ECONNRESET: the daemon closed) or nothing arrives for `timeout_ms`. The caller
// checks whether the answer is a welcome.
std::optional<Welcomed> SayHello(int socket, const PreambleHello& hello, int timeout_ms);

// Asks a daemon of this or a neighbouring release for the newest version. If the daemon speaks only an older one that
// this build also speaks, connects again and asks for that. `connect` returns a socket, or an invalid one with errno.
struct Greeting {
  UniqueFd socket;                      // the last one; invalid: `connect` failed
  std::optional<Welcomed> welcomed;     // as from SayHello
  const abi::Layout* layout = nullptr;  // the last one asked for: after kOk, the memory's
};
Greeting GreetDaemon(const std::function<UniqueFd()>& connect, int timeout_ms);

}  // namespace xschedd
