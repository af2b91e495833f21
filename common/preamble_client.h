// The client's half of the preamble (preamble.h), for the shim and for other clients.
// Thread rule: the thread that owns the socket.
#pragma once

#include <functional>
#include <optional>

#include "common/preamble.h"
#include "common/unique_fd.h"
#include "common/versions.h"

namespace xschedd {

struct Welcomed {
  PreambleWelcome welcome{};
  UniqueFd descriptors[kPreambleDescriptors];  // board, ledger, eventfd; valid only as far as they came
};

// The hello that asks for `layout`.
PreambleHello MakeHello(const abi::Layout& layout = abi::Newest());

// Sends `hello` over a connected socket, blocking or not, and receives the answer with its descriptors. None, with
// errno, if no whole answer came (ECONNRESET: the daemon closed) or nothing came for `timeout_ms`. The caller checks
// whether the answer is a welcome.
std::optional<Welcomed> SayHello(int socket, const PreambleHello& hello, int timeout_ms);

// Greets a daemon of this or a neighbouring release with the newest version; if the daemon speaks only an older one
// that this build also speaks, connects again with that. `connect` returns a socket, or an invalid one with errno.
struct Meeting {
  UniqueFd socket;                      // the last; invalid: `connect` failed
  std::optional<Welcomed> welcomed;     // as of SayHello
  const abi::Layout* layout = nullptr;  // what was asked for last: after kOk, what the memory has
};
Meeting MeetDaemon(const std::function<UniqueFd()>& connect, int timeout_ms);

}  // namespace xschedd
