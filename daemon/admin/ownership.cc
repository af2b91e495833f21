#include "daemon/admin/ownership.h"

#include "daemon/registry/process.h"

namespace xschedd {

grpc::Status Denied(Core& core, const Actor& by, const std::string& why) {
  core.Refused(PrincipalOf(by), ProcessText(by.pid, by.uid) + ": " + why);
  return {grpc::StatusCode::PERMISSION_DENIED, why};
}

grpc::Status NotYours(Core& core, const Actor& by, const ClientIdentity& who, const Principal& whose) {
  return Denied(core, by,
                "pid " + std::to_string(who.pid) + " is a client of " + Text(Principal(who.uid, whose.place)) +
                    ", and " + Text(PrincipalOf(by)) +
                    " may manage only its own on client.sock; ask an administrator (admin.sock)");
}

}  // namespace xschedd
