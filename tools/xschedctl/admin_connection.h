// What is behind AdminClient and EventStream: gRPC's channel. Only their sources include this, so that no command reads
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

  // What a status means to the user.
  Failure Explain(const grpc::Status& status) const;

  std::string socket_path;
  std::string why_not_admin;  // empty: it is admin.sock
  std::unique_ptr<v1::Admin::Stub> stub;
};

}  // namespace xschedd::ctl
