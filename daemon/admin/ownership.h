// Whose client one is: what a caller may change, and what one is told who may not. Thread rule: the daemon's one
// thread.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "daemon/core.h"

namespace xschedd {

// An administrator's are all, a user's its own.
inline bool IsFor(const Actor& by, const Client& client) {
  return by.is_admin || client.identity.uid == by.uid;
}

// Tells the caller and, within limits, the log.
grpc::Status Denied(Core& core, const Actor& by, const std::string& why);
grpc::Status NotYours(Core& core, const Actor& by, const ClientIdentity& who);

}  // namespace xschedd
