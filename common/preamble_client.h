// The client's half of the preamble (preamble.h), for the shim and for clients that are none.
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

// Sends `hello` over a connected socket, blocking or not, and takes the answer with what is attached to it. None, with
// errno, if no whole answer came (ECONNRESET: the daemon closed) or it stopped coming for `timeout_ms`. Whether the
// answer is a welcome is for the caller to see.
std::optional<Welcomed> SayHello(int socket, const PreambleHello& hello, int timeout_ms);

// Greets a daemon of this or a neighbouring release: says the newest version, and where the daemon knows only an older
// one that this build speaks too, comes again with that. `connect` gives a socket, or an invalid one with errno.
struct Meeting {
  UniqueFd socket;                      // the last; invalid: `connect` failed
  std::optional<Welcomed> welcomed;     // as of SayHello
  const abi::Layout* layout = nullptr;  // what was asked for last: after kOk, what the memory has
};
Meeting MeetDaemon(const std::function<UniqueFd()>& connect, int timeout_ms);

}  // namespace xschedd
