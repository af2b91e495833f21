// What each Admin call does, from its protobuf request to its response; admin_service.h calls it. An administrator sees
// and changes every client. A user (Actor::is_admin is false) sees and changes only its own; the answer says how many
// others were left out. Thread rule: the daemon's one thread.
#pragma once

#include <grpcpp/support/status.h>

#include <string>
#include <vector>

#include "admin.pb.h"
#include "daemon/connections/connections.h"
#include "daemon/connections/quotas.h"
#include "daemon/core.h"

namespace xschedd {

class AdminOperations {
 public:
  AdminOperations(Core& core, Connections& connections, Quotas& quotas)
      : core_(core), connections_(connections), quotas_(quotas) {}

  grpc::Status GetVersion(const Actor& by, const v1::GetVersionRequest& request, v1::GetVersionResponse& response);
  grpc::Status ListClients(const Actor& by, const v1::ListClientsRequest& request, v1::ListClientsResponse& response);
  grpc::Status Set(const Actor& by, const v1::SetRequest& request, v1::ChangeResponse& response);
  grpc::Status Hold(const Actor& by, const v1::HoldRequest& request, v1::ChangeResponse& response);
  grpc::Status Release(const Actor& by, const v1::ReleaseRequest& request, v1::ChangeResponse& response);
  grpc::Status GetCeiling(const Actor& by, const v1::GetCeilingRequest& request, v1::GetCeilingResponse& response);
  // Claims: only root puts and deletes them; any administrator lists them and their usage.
  grpc::Status PutClaim(const Actor& by, const v1::PutClaimRequest& request, v1::PutClaimResponse& response);
  grpc::Status DeleteClaim(const Actor& by, const v1::DeleteClaimRequest& request, v1::DeleteClaimResponse& response);
  grpc::Status ListClaims(const Actor& by, const v1::ListClaimsRequest& request, v1::ListClaimsResponse& response);
  grpc::Status ReportClaims(const Actor& by, const v1::ReportClaimsRequest& request,
                            v1::ReportClaimsResponse& response);
  grpc::Status GetPolicy(const Actor& by, const v1::GetPolicyRequest& request, v1::Policy& response);
  grpc::Status SetPolicy(const Actor& by, const v1::SetPolicyRequest& request, v1::Policy& response);
  grpc::Status GetStats(const Actor& by, const v1::GetStatsRequest& request, v1::Stats& response);
  grpc::Status Explain(const Actor& by, const v1::ExplainRequest& request, v1::ExplainResponse& response);
  grpc::Status GetConfig(const Actor& by, const v1::GetConfigRequest& request, v1::GetConfigResponse& response);
  grpc::Status Reload(const Actor& by, const v1::ReloadRequest& request, v1::ReloadResponse& response);
  grpc::Status Disable(const Actor& by, const v1::DisableRequest& request, v1::DisableResponse& response);
  grpc::Status Enable(const Actor& by, const v1::EnableRequest& request, v1::EnableResponse& response);
  grpc::Status Drain(const Actor& by, const v1::DrainRequest& request, v1::DrainResponse& response);

 private:
  // The clients to change; at least one.
  struct Selected {
    std::vector<Client*> clients;
    std::uint32_t left_out = 0;  // clients of other users, which the caller may not change
  };
  grpc::Status Select(const Actor& by, const v1::Selector& selector, Selected& selected);
  // Charges a user's quota of calls by the number of clients that the call concerns.
  void ChargeFor(const Actor& by, std::size_t clients);
  grpc::Status ChangeHold(const Actor& by, const v1::Selector& selector, bool hold, bool dry_run,
                          v1::ChangeResponse& response);

  Core& core_;
  Connections& connections_;
  Quotas& quotas_;
};

}  // namespace xschedd
