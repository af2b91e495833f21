// The calls by which a fleet's engine says what applies to its jobs and containers: claims (registry/claim.h).
#include <unistd.h>

#include <algorithm>
#include <map>

#include "common/clock.h"
#include "daemon/admin/admin_operations.h"
#include "daemon/admin/conversion.h"
#include "daemon/admin/ownership.h"
#include "daemon/registry/process.h"

namespace xschedd {
namespace {

using grpc::Status;
using grpc::StatusCode;

// A claim binds users' processes, so only root puts one; members of group xschedd only list them.
bool MayClaim(const Actor& by) {
  return by.is_admin && (by.uid == 0 || by.uid == ::geteuid());
}

Status NotRoot(Core& core, const Actor& by) {
  return Denied(core, by,
                "only root may put and delete claims, and uid " + std::to_string(by.uid) +
                    " is not root; run the fleet's plugin, or xschedctl, as root");
}

Status NoSuchClaim(const std::string& name) {
  return {StatusCode::NOT_FOUND,
          "there is no claim \"" + CleanText(name, kMaxClaimNameBytes) + "\"; xschedctl claim list shows all claims"};
}

Result<Claim> ClaimFrom(const v1::Claim& from) {
  Claim claim;
  claim.name = from.name();
  claim.cgroup = from.cgroup();
  claim.has_socket = from.has_socket();
  if (from.has_priority()) claim.priority = from.priority();
  if (from.has_ceiling()) claim.ceiling = from.ceiling();
  if (from.has_weight()) claim.weight = from.weight();
  if (from.has_weight_ceiling()) claim.weight_ceiling = from.weight_ceiling();
  if (from.has_memory_limit()) claim.memory_limit = from.memory_limit();
  claim.group = from.group();
  for (const auto& [name, value] : from.labels())
    claim.labels[name] = value;
  if (from.ttl_ms() > kMaxClaimTtlMs) {
    return Fail("a claim cannot live for " + std::to_string(from.ttl_ms()) + " ms",
                "give 1 s to 366 days, or nothing: then it lives as long as its cgroup");
  }
  claim.ttl_ns = from.ttl_ms() * policy::kNsPerMs;
  if (from.latency().empty()) return claim;
  const Result<Latency> latency = ParseLatency(CleanText(from.latency(), kMaxWordBytes));
  if (!latency) return tl::unexpected(latency.error());
  claim.latency = *latency;
  return claim;
}

}  // namespace

Status AdminOperations::PutClaim(const Actor& by, const v1::PutClaimRequest& request, v1::PutClaimResponse& response) {
  if (!MayClaim(by)) return NotRoot(core_, by);
  auto claim = ClaimFrom(request.claim());
  if (!claim) return {StatusCode::INVALID_ARGUMENT, claim.error().Line()};
  if (core_.Claims().All().size() >= kMaxClaims && core_.Claims().Find(claim->name) == nullptr) {
    return {StatusCode::RESOURCE_EXHAUSTED,
            "there are " + std::to_string(kMaxClaims) +
                " claims, as many as xschedd keeps; remove those of jobs that have ended"};
  }
  const std::uint64_t began = MonotonicNs();
  const auto put = core_.PutClaim(std::move(*claim), by, request.dry_run());
  if (!put) return {StatusCode::INVALID_ARGUMENT, put.error().Line()};
  FillClaim(*put->claim, core_.ClientsOf(*put->claim), MonotonicNs(), *response.mutable_claim());
  response.set_is_new(put->is_new);
  if (!request.dry_run()) response.set_applied_ns(std::max(core_.GetScheduler().LastWriteNs(), began));
  return Status::OK;
}

Status AdminOperations::DeleteClaim(const Actor& by, const v1::DeleteClaimRequest& request,
                                    v1::DeleteClaimResponse& response) {
  if (!MayClaim(by)) return NotRoot(core_, by);
  const ClaimPtr claim = core_.Claims().Find(request.name());
  if (claim == nullptr) return NoSuchClaim(request.name());
  const std::uint64_t began = MonotonicNs();
  FillClaim(*claim, core_.ClientsOf(*claim), began, *response.mutable_claim());
  if (request.dry_run()) return Status::OK;
  core_.DeleteClaim(request.name(), by);
  response.set_applied_ns(std::max(core_.GetScheduler().LastWriteNs(), began));
  return Status::OK;
}

Status AdminOperations::ListClaims(const Actor&, const v1::ListClaimsRequest& request,
                                   v1::ListClaimsResponse& response) {
  if (!request.name().empty() && core_.Claims().Find(request.name()) == nullptr) return NoSuchClaim(request.name());
  std::map<std::uint64_t, std::size_t> clients;
  for (const auto& [id, client] : core_.Clients().Clients())
    if (client->claim != nullptr) ++clients[client->claim->id];
  const std::uint64_t now = MonotonicNs();
  for (const auto& [name, claim] : core_.Claims().All()) {
    if (request.name().empty() || request.name() == name)
      FillClaim(*claim, clients[claim->id], now, *response.add_claims());
  }
  return Status::OK;
}

Status AdminOperations::ReportClaims(const Actor&, const v1::ReportClaimsRequest& request,
                                     v1::ReportClaimsResponse& response) {
  for (const ClaimAccount* account : core_.SettledAccounts().Sorted(request.name()))
    FillClaimReport(*account, core_.ClientsOf(*account->claim), *response.add_claims());
  if (!request.name().empty() && response.claims().empty()) {
    return {StatusCode::NOT_FOUND, "there is no claim \"" + CleanText(request.name(), kMaxClaimNameBytes) +
                                       "\", nor was it among the last " + std::to_string(kMaxEndedClaims) +
                                       " that ended; xschedctl claim report shows all"};
  }
  return Status::OK;
}

}  // namespace xschedd
