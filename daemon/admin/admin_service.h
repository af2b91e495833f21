// xschedd.v1.Admin on one of the two sockets: moves each call to the daemon's one thread, checks whether the socket
// allows it (rights.h) and whether the caller has calls left (quotas.h), and passes it to AdminOperations. Thread rule:
// gRPC's threads; the operations run on the daemon's one thread.
#pragma once

#include <functional>
#include <string>

#include "admin.grpc.pb.h"
#include "daemon/admin/admin_operations.h"
#include "daemon/host.h"
#include "daemon/metrics/metrics_collector.h"

namespace xschedd {

class AdminService final : public v1::Admin::CallbackService {
 public:
  // `is_admin`: this serves admin.sock. Nothing else makes a caller an administrator.
  AdminService(Host& host, AdminOperations& operations, MetricsCollector& metrics, bool is_admin)
      : host_(host), operations_(operations), metrics_(metrics), is_admin_(is_admin) {}

#define XSCHEDD_UNARY(Name, Request, Response)                                                     \
  grpc::ServerUnaryReactor* Name(grpc::CallbackServerContext* context, const v1::Request* request, \
                                 v1::Response* response) override {                                \
    return Run(context, #Name, request, response, &AdminOperations::Name);                         \
  }
  XSCHEDD_UNARY(GetVersion, GetVersionRequest, GetVersionResponse)
  XSCHEDD_UNARY(ListClients, ListClientsRequest, ListClientsResponse)
  XSCHEDD_UNARY(Set, SetRequest, ChangeResponse)
  XSCHEDD_UNARY(Hold, HoldRequest, ChangeResponse)
  XSCHEDD_UNARY(Release, ReleaseRequest, ChangeResponse)
  XSCHEDD_UNARY(GetCeiling, GetCeilingRequest, GetCeilingResponse)
  XSCHEDD_UNARY(PutClaim, PutClaimRequest, PutClaimResponse)
  XSCHEDD_UNARY(DeleteClaim, DeleteClaimRequest, DeleteClaimResponse)
  XSCHEDD_UNARY(ListClaims, ListClaimsRequest, ListClaimsResponse)
  XSCHEDD_UNARY(ReportClaims, ReportClaimsRequest, ReportClaimsResponse)
  XSCHEDD_UNARY(GetPolicy, GetPolicyRequest, Policy)
  XSCHEDD_UNARY(SetPolicy, SetPolicyRequest, Policy)
  XSCHEDD_UNARY(GetStats, GetStatsRequest, Stats)
  XSCHEDD_UNARY(Explain, ExplainRequest, ExplainResponse)
  XSCHEDD_UNARY(GetConfig, GetConfigRequest, GetConfigResponse)
  XSCHEDD_UNARY(Reload, ReloadRequest, ReloadResponse)
  XSCHEDD_UNARY(Disable, DisableRequest, DisableResponse)
  XSCHEDD_UNARY(Enable, EnableRequest, EnableResponse)
  XSCHEDD_UNARY(Drain, DrainRequest, DrainResponse)
#undef XSCHEDD_UNARY

  // Not in AdminOperations, because it does not answer at once.
  grpc::ServerUnaryReactor* GetMetrics(grpc::CallbackServerContext* context, const v1::GetMetricsRequest* request,
                                       v1::MetricsText* response) override;

  grpc::ServerWriteReactor<v1::Event>* WatchEvents(grpc::CallbackServerContext* context,
                                                   const v1::WatchEventsRequest* request) override;

 private:
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Run(grpc::CallbackServerContext* context, const char* rpc, const Request* request,
                                Response* response,
                                grpc::Status (AdminOperations::*operation)(const Actor&, const Request&, Response&)) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    // Request and response live until Finish. `this` is not captured: with -fsanitize=undefined, GCC 12 calls a member
    // pointer on one of its members through a temporary that it never initialises.
    host_.Post([&host = host_, &operations = operations_, is_admin = is_admin_, rpc, reactor, request, response,
                operation, peer = context->peer()] {
      Actor by;
      grpc::Status status = Authorise(host, is_admin, peer, rpc, by);
      if (status.ok()) status = std::invoke(operation, operations, by, *request, *response);
      if constexpr (requires { response->set_not_saved(std::string()); }) {
        // The answer waits until the change is saved: no restart may lose what a caller has been told is in effect.
        host.state.WhenSaved([reactor, response, status](const Result<void>& saved) {
          if (!saved) response->set_not_saved(saved.error().Line());
          reactor->Finish(status);
        });
      } else {
        reactor->Finish(status);
      }
    });
    return reactor;
  }

  // `rpc`: its name in admin.proto.
  static grpc::Status Authorise(Host& host, bool is_admin, const std::string& peer, const std::string& rpc, Actor& by);
  friend class EventWatcher;

  Host& host_;
  AdminOperations& operations_;
  MetricsCollector& metrics_;
  const bool is_admin_;
};

}  // namespace xschedd
