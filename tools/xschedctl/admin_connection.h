// gRPC's channel behind AdminClient and EventStream. Only their sources include this, so that no command includes
// gRPC's headers. Thread rule: as AdminClient.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "admin.grpc.pb.h"
#include "common/unique_fd.h"
#include "tools/xschedctl/admin_client.h"

namespace xschedd::ctl {

struct AdminConnection {
  AdminConnection(std::string path, std::string reason, UniqueFd fd);

  // The exit status and message for a gRPC status.
  Failure Explain(const grpc::Status& status) const;

  std::string socket_path;
  std::string why_not_admin;  // empty: it is admin.sock
  std::unique_ptr<v1::Admin::Stub> stub;
};

}  // namespace xschedd::ctl
