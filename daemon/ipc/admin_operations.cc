#include "daemon/ipc/admin_operations.h"

#include <unistd.h>

#include <algorithm>

#include "common/clock.h"
#include "daemon/build_config.h"
#include "daemon/ipc/conversion.h"
#include "daemon/ipc/selector.h"
#include "daemon/scheduler/explain.h"

namespace xschedd {
namespace {

using grpc::Status;
using grpc::StatusCode;

std::uint64_t AppliedNs(const Scheduler& scheduler, std::uint64_t began_ns) {
  // No gate had to be written: what was asked for held already when the call came.
  return std::max(scheduler.LastWriteNs(), began_ns);
}

Status CheckNumber(const char* name, std::uint32_t value, policy::Limits limits) {
  if (value >= limits.min && value <= limits.max) return Status::OK;
  return {StatusCode::INVALID_ARGUMENT, std::string(name) + " " + std::to_string(value) +
                                            " is out of range; give a number from " + std::to_string(limits.min) +
                                            " to " + std::to_string(limits.max)};
}

}  // namespace

Status AdminOperations::GetVersion(const Actor&, const v1::GetVersionRequest&, v1::GetVersionResponse& response) {
  response.set_version(kDaemonVersion);
  response.set_abi_version(abi::kVersion);
  response.set_layout_hash(abi::kLayoutHash);
  response.set_pid(static_cast<std::uint64_t>(::getpid()));
  response.set_uptime_ms((MonotonicNs() - core_.StartedNs()) / policy::kNsPerMs);
  return Status::OK;
}

Status AdminOperations::Select(const v1::Selector& selector, std::vector<Client*>& clients) {
  if (IsEmpty(selector)) {
    return {StatusCode::INVALID_ARGUMENT,
            "the selector names no clients; give a pid, uid, group, cgroup or exe, or say all"};
  }
  for (const auto& [id, client] : core_.Clients().Clients()) {
    if (Matches(selector, *client)) clients.push_back(client.get());
  }
  if (clients.empty()) {
    return {StatusCode::NOT_FOUND, "no client fits " + Describe(selector) + "; xschedctl ps shows who is connected"};
  }
  return Status::OK;
}

Status AdminOperations::ListClients(const Actor&, const v1::ListClientsRequest& request,
                                    v1::ListClientsResponse& response) {
  const std::uint64_t now = MonotonicNs();
  const bool everybody = IsEmpty(request.selector());  // nothing is changed here, so nothing needs to be named
  for (const auto& [id, client] : core_.Clients().Clients()) {
    if (everybody || Matches(request.selector(), *client)) {
      FillClient(*client, core_.Sched(), now, *response.add_clients());
    }
  }
  for (const auto& [address, device] : core_.Clients().Devices())
    FillDevice(*device, *response.add_devices());
  response.set_policy(std::string(policy::Text(core_.Settings().policy.name)));
  return Status::OK;
}

Status AdminOperations::SetPriority(const Actor& by, const v1::SetPriorityRequest& request,
                                    v1::ChangeResponse& response) {
  if (!IsPriority(request.priority())) {
    return {StatusCode::INVALID_ARGUMENT,
            "priority " + std::to_string(request.priority()) + " is out of range; give a number from -100 to 100"};
  }
  return ChangePriority(by, request.selector(), request.priority(), request.dry_run(), response);
}

Status AdminOperations::ResetPriority(const Actor& by, const v1::ResetPriorityRequest& request,
                                      v1::ChangeResponse& response) {
  return ChangePriority(by, request.selector(), std::nullopt, request.dry_run(), response);
}

Status AdminOperations::ChangePriority(const Actor& by, const v1::Selector& selector, std::optional<int> priority,
                                       bool dry_run, v1::ChangeResponse& response) {
  std::vector<Client*> clients;
  if (Status status = Select(selector, clients); !status.ok()) return status;
  const std::uint64_t began = MonotonicNs();
  for (const Client* client : clients) {
    const Effective after = core_.EffectiveWith(*client, priority);
    v1::ChangeResponse::Change& change = *response.add_changes();
    change.set_pid(client->identity.pid);
    change.set_priority_before(client->effective.priority);
    change.set_priority_after(after.priority);
    change.set_hold_after(client->hold);
    if (after.limited) change.set_note("limited by the ceiling of uid " + std::to_string(client->identity.uid));
  }
  if (dry_run) return Status::OK;
  core_.SetAdminPriority(clients, priority, by);
  response.set_applied_ns(AppliedNs(core_.Sched(), began));
  return Status::OK;
}

Status AdminOperations::Hold(const Actor& by, const v1::HoldRequest& request, v1::ChangeResponse& response) {
  return ChangeHold(by, request.selector(), true, request.dry_run(), response);
}

Status AdminOperations::Release(const Actor& by, const v1::ReleaseRequest& request, v1::ChangeResponse& response) {
  return ChangeHold(by, request.selector(), false, request.dry_run(), response);
}

Status AdminOperations::ChangeHold(const Actor& by, const v1::Selector& selector, bool hold, bool dry_run,
                                   v1::ChangeResponse& response) {
  std::vector<Client*> clients;
  if (Status status = Select(selector, clients); !status.ok()) return status;
  const std::uint64_t began = MonotonicNs();
  for (const Client* client : clients) {
    v1::ChangeResponse::Change& change = *response.add_changes();
    change.set_pid(client->identity.pid);
    change.set_priority_before(client->effective.priority);
    change.set_priority_after(client->effective.priority);
    change.set_hold_after(hold);
    if (client->hold == hold) change.set_note(hold ? "was on hold already" : "was not on hold");
    if (client->channel == nullptr) change.set_note("has no shared memory and cannot be gated");
  }
  if (dry_run) return Status::OK;
  core_.SetHold(clients, hold, by);
  response.set_applied_ns(AppliedNs(core_.Sched(), began));
  return Status::OK;
}

Status AdminOperations::GetPolicy(const Actor&, const v1::GetPolicyRequest&, v1::Policy& response) {
  FillPolicy(core_.Settings().policy, response);
  return Status::OK;
}

Status AdminOperations::SetPolicy(const Actor& by, const v1::SetPolicyRequest& request, v1::Policy& response) {
  policy::Settings settings = core_.Settings().policy;
  if (request.has_name()) {
    const auto name = policy::NameFrom(request.name());
    if (!name) {
      return {StatusCode::INVALID_ARGUMENT, "there is no such policy; choose " + policy::NamesText()};
    }
    settings.name = *name;
  }
  const auto take = [](bool given, const char* name, std::uint32_t value, policy::Limits limits, auto& place) {
    if (!given) return Status::OK;
    Status status = CheckNumber(name, value, limits);
    if (status.ok()) place = value;
    return status;
  };
  const Status statuses[] = {
      take(request.has_linger_us(), "linger_us", request.linger_us(), policy::kLingerLimits, settings.linger_us),
      take(request.has_guard_ms_per_s(), "guard_ms_per_s", request.guard_ms_per_s(), policy::kGuardLimits,
           settings.guard_ms_per_s),
      take(request.has_window_us(), "window_us", request.window_us(), policy::kWindowLimits, settings.window_us),
      take(request.has_top_window_us(), "top_window_us", request.top_window_us(), policy::kWindowLimits,
           settings.top_window_us),
      take(request.has_max_concurrent(), "max_concurrent", request.max_concurrent(), policy::kConcurrentLimits,
           settings.max_concurrent),
      take(request.has_turn_ms(), "turn_ms", request.turn_ms(), policy::kTurnLimits, settings.turn_ms),
  };
  for (const Status& status : statuses) {
    if (!status.ok()) return status;
  }
  if (!request.dry_run()) core_.SetPolicy(settings, by);
  FillPolicy(settings, response);
  return Status::OK;
}

Status AdminOperations::GetStats(const Actor&, const v1::GetStatsRequest&, v1::Stats& response) {
  const SchedulerCounts& counts = core_.Sched().Counts();
  response.set_uptime_ms((MonotonicNs() - core_.StartedNs()) / policy::kNsPerMs);
  response.set_clients(core_.Clients().Clients().size());
  response.set_connections_total(connections_.Total());
  response.set_transitions_total(counts.transitions);
  response.set_decisions_total(counts.decisions);
  response.set_gate_writes_total(counts.gate_writes);
  response.set_refused_total(core_.RefusedTotal() + counts.refused_records);
  response.set_decision_p50_ns(core_.Sched().Latency().Quantile(0.50));
  response.set_decision_p99_ns(core_.Sched().Latency().Quantile(0.99));
  return Status::OK;
}

Status AdminOperations::Explain(const Actor&, const v1::ExplainRequest& request, v1::ExplainResponse& response) {
  const std::vector<Client*> clients = core_.Clients().FindPid(request.pid());
  if (clients.empty()) {
    return {StatusCode::NOT_FOUND,
            "no client has pid " + std::to_string(request.pid()) + "; xschedctl ps shows who is connected"};
  }
  const Explanation explanation =
      ExplainClient(*clients.back(), core_.Settings().policy, request.seconds(), MonotonicNs());
  for (const HeldSpan& span : explanation.spans)
    FillSpan(span, *response.add_held());
  response.set_held_ns(explanation.held_ns);
  response.set_observed_ns(explanation.observed_ns);
  response.set_summary(explanation.summary);
  response.set_remedy(explanation.remedy);
  return Status::OK;
}

Status AdminOperations::Reload(const Actor& by, const v1::ReloadRequest&, v1::ReloadResponse& response) {
  const auto notes = core_.Reload(by);
  if (!notes) return {StatusCode::FAILED_PRECONDITION, notes.error().Line() + "; the old configuration stays"};
  for (const std::string& note : *notes)
    response.add_notes(note);
  return Status::OK;
}

Status AdminOperations::Drain(const Actor& by, const v1::DrainRequest&, v1::DrainResponse& response) {
  connections_.Drain();
  core_.Drain(by);
  response.set_clients(static_cast<std::uint32_t>(core_.Clients().Clients().size()));
  return Status::OK;
}

}  // namespace xschedd
