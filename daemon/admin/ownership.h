// Which clients a caller may change, and the answer if it may not. Thread rule: the daemon's one thread.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "daemon/core.h"

namespace xschedd {

// An administrator may change all clients, a user only its own (MayManage in registry/principal.h).
inline bool MayChange(const Actor& by, const Client& client) {
  return by.is_admin || MayManage(PrincipalOf(by), client.identity.uid, *client.principal);
}

// Both answer the caller and, within limits, write to the log.
grpc::Status Denied(Core& core, const Actor& by, const std::string& why);
grpc::Status NotYours(Core& core, const Actor& by, const ClientIdentity& who, const Principal& whose);

}  // namespace xschedd
