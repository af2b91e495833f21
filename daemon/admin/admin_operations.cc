// The calls that change nothing: clients, statistics, explanations.
#include "daemon/admin/admin_operations.h"

#include <unistd.h>

#include "common/clock.h"
#include "daemon/admin/conversion.h"
#include "daemon/admin/ownership.h"
#include "daemon/admin/selector.h"
#include "daemon/build_config.h"
#include "daemon/registry/effective_words.h"
#include "daemon/scheduler/explain.h"

namespace xschedd {
namespace {

using grpc::Status;
using grpc::StatusCode;

// An expensive call counts as several.
constexpr std::size_t kClientsPerCall = 50;
constexpr std::uint64_t kExtraCallsForExplain = 4;

bool MaySee(const Actor& by, const Client& client) {
  return by.may_read_all || MayChange(by, client);
}

}  // namespace

Status AdminOperations::GetVersion(const Actor&, const v1::GetVersionRequest&, v1::GetVersionResponse& response) {
  response.set_version(kDaemonVersion);
  response.set_abi_version(abi::Newest().version);
  response.set_layout_hash(abi::Newest().layout_hash);
  response.set_pid(static_cast<std::uint64_t>(::getpid()));
  response.set_uptime_ms((MonotonicNs() - core_.StartedNs()) / policy::kNsPerMs);
  return Status::OK;
}

Status AdminOperations::ListClients(const Actor& by, const v1::ListClientsRequest& request,
                                    v1::ListClientsResponse& response) {
  const std::uint64_t now = MonotonicNs();
  const bool everybody = IsEmpty(request.selector());  // the call changes nothing, so an empty selector is safe
  std::uint32_t left_out = 0;
  for (const auto& [id, client] : core_.Clients().Clients()) {
    if (!everybody && !Matches(request.selector(), *client)) continue;
    if (MaySee(by, *client)) {
      FillClient(*client, core_.GetScheduler(), now, *response.add_clients());
    } else {
      ++left_out;
    }
  }
  for (const auto& [address, device] : core_.Clients().Devices())
    FillDevice(*device, *response.add_devices());
  response.set_left_out(left_out);
  response.set_policy(std::string(policy::Text(core_.Settings().policy.name)));
  response.set_observes_only(!core_.Settings().enforce);
  response.set_time_ns(now);
  ChargeFor(by, static_cast<std::size_t>(response.clients_size()) + static_cast<std::size_t>(response.devices_size()));
  return Status::OK;
}

void AdminOperations::ChargeFor(const Actor& by, std::size_t clients) {
  if (!by.is_admin) quotas_.Charge(PrincipalOf(by), QuotaKind::kCalls, clients / kClientsPerCall);
}

Status AdminOperations::GetCeiling(const Actor& by, const v1::GetCeilingRequest&, v1::GetCeilingResponse& response) {
  const Config& config = core_.Settings();
  OwnCeiling ceiling = OwnCeilingOf(by.uid, by.may_raise, config);
  response.set_why(CeilingText(by.uid, ceiling.is_configured));
  const ClaimPtr& claim = by.claim;
  if (claim != nullptr) ceiling = WithClaim(ceiling, *claim, by.uid, config);
  if (claim != nullptr && (claim->priority || claim->ceiling || claim->weight || claim->weight_ceiling))
    response.set_why(ClaimText(*claim));
  response.set_priority(ceiling.priority);
  response.set_weight(ceiling.weight);
  return Status::OK;
}

Status AdminOperations::GetStats(const Actor&, const v1::GetStatsRequest&, v1::Stats& response) {
  const SchedulerCounts& counts = core_.GetScheduler().Counts();
  response.set_uptime_ms((MonotonicNs() - core_.StartedNs()) / policy::kNsPerMs);
  response.set_clients(core_.Clients().Clients().size());
  response.set_connections_total(connections_.Total());
  response.set_transitions_total(counts.transitions);
  response.set_decisions_total(counts.decisions);
  response.set_gate_writes_total(counts.gate_writes);
  response.set_refused_total(core_.RefusedTotal() + counts.refused_records);
  response.set_decision_p50_ns(core_.GetScheduler().Records().Latency().Quantile(0.50));
  response.set_decision_p99_ns(core_.GetScheduler().Records().Latency().Quantile(0.99));
  for (std::size_t i = 0; i < kQuotaKinds; ++i) {
    const auto kind = static_cast<QuotaKind>(i);
    if (quotas_.Refused(kind) == 0) continue;
    v1::Stats::QuotaRefusals& refusals = *response.add_quota_refusals();
    refusals.set_quota(std::string(Text(kind)));
    refusals.set_count(quotas_.Refused(kind));
  }
  return Status::OK;
}

Status AdminOperations::Explain(const Actor& by, const v1::ExplainRequest& request, v1::ExplainResponse& response) {
  const ExplainContext context{
      .registry = core_.Clients(),
      .histories = core_.GetScheduler().Records().Histories(),
      .config = core_.Settings(),
      .now_ns = MonotonicNs(),
      .only_of = by.is_admin || by.may_read_all ? std::nullopt : std::optional<Principal>(PrincipalOf(by)),
      .is_admin = by.is_admin,
  };
  if (!by.is_admin) quotas_.Charge(PrincipalOf(by), QuotaKind::kCalls, kExtraCallsForExplain);
  const std::vector<Client*> clients = core_.Clients().FindPid(request.pid());
  const PastClient* const past = core_.GetScheduler().Records().Past().Find(request.pid());
  if (clients.empty() && past == nullptr) {
    return {StatusCode::NOT_FOUND, "no client has pid " + std::to_string(request.pid()) + ", nor had any of the last " +
                                       std::to_string(PastClients::kClients) +
                                       " that ended; xschedctl ps lists the connected clients"};
  }
  const ClientIdentity& who = clients.empty() ? past->identity : clients.back()->identity;
  const Principal& whose = clients.empty() ? *past->principal : *clients.back()->principal;
  if (context.only_of && !MayManage(*context.only_of, who.uid, whose)) return NotYours(core_, by, who, whose);
  FillExplanation(clients.empty() ? ExplainClient(*past, request.seconds(), context)
                                  : ExplainClient(*clients.back(), request.seconds(), context),
                  response);
  response.set_policy(std::string(policy::Text(core_.Settings().policy.name)));
  return Status::OK;
}

}  // namespace xschedd
