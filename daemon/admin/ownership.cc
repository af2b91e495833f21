#include "daemon/admin/ownership.h"

#include "daemon/registry/process.h"

namespace xschedd {

grpc::Status Denied(Core& core, const Actor& by, const std::string& why) {
  core.Refused(by.uid, ProcessText(by.pid, by.uid) + ": " + why);
  return {grpc::StatusCode::PERMISSION_DENIED, why};
}

grpc::Status NotYours(Core& core, const Actor& by, const ClientIdentity& who) {
  return Denied(core, by,
                "pid " + std::to_string(who.pid) + " is a client of uid " + std::to_string(who.uid) + ", and uid " +
                    std::to_string(by.uid) +
                    " may manage only its own on client.sock; ask an administrator (admin.sock)");
}

}  // namespace xschedd
