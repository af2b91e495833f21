// xschedd.v1.Admin on one of the two sockets: moves each call to the daemon's one thread, checks whether the socket
// allows it (rights.h) and whether the caller has calls left (quotas.h), and passes it to AdminOperations. Thread rule:
// gRPC's threads; the operations run on the daemon's one thread.
#pragma once

#include <memory>

#include "daemon/admin/admin_operations.h"
#include "daemon/host.h"
#include "daemon/metrics/metrics_collector.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace xschedd {

class AdminService {
 public:
  // `is_admin`: this serves admin.sock. Nothing else makes a caller an administrator. All references must outlive it.
  AdminService(Host& host, AdminOperations& operations, MetricsCollector& metrics, bool is_admin);
  ~AdminService();

  // What gRPC serves; as long as this.
  grpc::Service& Rpc();

 private:
  class Calls;

  const std::unique_ptr<Calls> calls_;
};

}  // namespace xschedd
