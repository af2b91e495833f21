// Who may call what. On admin.sock, which only root and group xschedd can open, every call is allowed. On client.sock,
// which any local user can open, only the calls in the table of rights.cc are allowed; a call that is missing there,
// such as a new one, is refused. docs/explanation/security-model.md has the same table, and a test compares both with
// the daemon. Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace xschedd {

enum class Right {
  kRefused,     // needs admin.sock
  kAnybody,     // reveals nothing about other users
  kOwnClients,  // sees and changes the caller's own clients (MayManage); a reader sees those of everybody
  kReaders,     // shows things of all users and changes nothing: for readers (registry/roles.h)
};

// `rpc`: as in admin.proto, "ListClients".
Right RightOnClientSocket(std::string_view rpc);

// The error for the caller: why the call is refused, and what to do.
std::string RefusalText(std::string_view rpc);

}  // namespace xschedd
