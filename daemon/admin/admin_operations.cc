#include "daemon/admin/admin_operations.h"

#include <unistd.h>

#include <algorithm>

#include "common/clock.h"
#include "daemon/admin/conversion.h"
#include "daemon/admin/selector.h"
#include "daemon/build_config.h"
#include "daemon/config/conversion.h"
#include "daemon/config/settings_message.h"
#include "daemon/registry/effective_words.h"
#include "daemon/registry/process.h"
#include "daemon/scheduler/explain.h"

namespace xschedd {
namespace {

using grpc::Status;
using grpc::StatusCode;

std::uint64_t AppliedNs(const Scheduler& scheduler, std::uint64_t began_ns) {
  // No gate had to be written: what was asked for held already when the call came.
  return std::max(scheduler.LastWriteNs(), began_ns);
}

// A call that costs the daemon more than others counts as several.
constexpr std::size_t kClientsForOneCall = 50;
constexpr std::uint64_t kMoreForExplain = 4;

bool IsFor(const Actor& by, const Client& client) {
  return by.is_admin || client.identity.uid == by.uid;
}

bool MaySee(const Actor& by, const Client& client) {
  return by.may_read_all || IsFor(by, client);
}

// Tells the caller and, within limits, the log.
Status Denied(Core& core, const Actor& by, const std::string& why) {
  core.Refused(by.uid, ProcessText(by.pid, by.uid) + ": " + why);
  return {StatusCode::PERMISSION_DENIED, why};
}

Status NotYours(Core& core, const Actor& by, const ClientIdentity& who) {
  return Denied(core, by,
                "pid " + std::to_string(who.pid) + " is a client of uid " + std::to_string(who.uid) + ", and uid " +
                    std::to_string(by.uid) +
                    " may manage only its own on client.sock; ask an administrator (admin.sock)");
}

// For a user whose setting is kept, but does not count at present.
void NoteWhatGoesBefore(const std::string& what, PrioritySource source, v1::ChangeResponse::Change& change) {
  if (source == PrioritySource::kAdmin) change.set_note("kept; an administrator's " + what + " goes before it");
  if (source == PrioritySource::kGroup) change.set_note("kept; that of its group goes before it");
  if (source == PrioritySource::kRule) change.set_note("kept; a rule of the configuration sets the " + what);
}

Status CheckNumber(const char* name, std::uint32_t value, policy::Limits limits) {
  if (value >= limits.min && value <= limits.max) return Status::OK;
  return {StatusCode::INVALID_ARGUMENT, std::string(name) + " " + std::to_string(value) +
                                            " is out of range; give a number from " + std::to_string(limits.min) +
                                            " to " + std::to_string(limits.max)};
}

// All of the request, or none of it counts.
Result<void> TakeSettings(const v1::SetPolicyRequest& request, policy::Settings& settings) {
  for (const auto& [key, value] : request.settings()) {
    if (policy::RowFrom(key) == nullptr)
      return Fail("there is no setting \"" + CleanText(key, 64) + "\"", "policy set --help lists them");
  }
  for (const policy::SettingRow& row : policy::kSettings) {
    const auto value = FindSetting(row, request);
    if (!value) return tl::unexpected<Error>(value.error());
    if (!*value) continue;
    if (Result<void> taken = policy::Set(row, **value, settings); !taken) return taken;
  }
  return {};
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

Status AdminOperations::Select(const Actor& by, const v1::Selector& selector, Selected& selected) {
  if (IsEmpty(selector)) {
    return {StatusCode::INVALID_ARGUMENT,
            "the selector names no clients; give a pid, uid, group, cgroup or exe, or say all"};
  }
  const Client* other = nullptr;
  for (const auto& [id, client] : core_.Clients().Clients()) {
    if (!Matches(selector, *client)) continue;
    if (IsFor(by, *client)) {
      selected.clients.push_back(client.get());
    } else {
      other = client.get();
      ++selected.left_out;
    }
  }
  // Whoever names a process means that one, and is told; whoever names a kind of client means own ones.
  if (other != nullptr && !selector.pid().empty()) return NotYours(core_, by, other->identity);
  if (other != nullptr && selected.clients.empty()) {
    return Denied(core_, by,
                  "uid " + std::to_string(by.uid) + " has no client that fits, and may not change the " +
                      std::to_string(selected.left_out) +
                      " of other users on client.sock; ask an administrator (admin.sock)");
  }
  if (selected.clients.empty()) {
    return {StatusCode::NOT_FOUND, "no client matches " + Describe(selector) + "; xschedctl ps shows who is connected"};
  }
  return Status::OK;
}

Status AdminOperations::ListClients(const Actor& by, const v1::ListClientsRequest& request,
                                    v1::ListClientsResponse& response) {
  const std::uint64_t now = MonotonicNs();
  const bool everybody = IsEmpty(request.selector());  // nothing is changed here, so nothing needs to be named
  std::uint32_t left_out = 0;
  for (const auto& [id, client] : core_.Clients().Clients()) {
    if (!everybody && !Matches(request.selector(), *client)) continue;
    if (MaySee(by, *client)) {
      FillClient(*client, core_.Sched(), now, *response.add_clients());
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
  if (!by.is_admin) quotas_.Charge(by.uid, QuotaKind::kCalls, clients / kClientsForOneCall);
}

Status AdminOperations::Set(const Actor& by, const v1::SetRequest& request, v1::ChangeResponse& response) {
  const bool sets_priority = request.has_priority() || request.reset_priority();
  const bool sets_weight = request.has_weight() || request.reset_weight();
  const bool sets_latency = !request.latency().empty() || request.reset_latency();
  if (!sets_priority && !sets_weight && !sets_latency) {
    return {StatusCode::INVALID_ARGUMENT, "nothing to set; give a priority, a weight, a latency or what to reset"};
  }
  std::optional<Latency> latency;
  if (!request.latency().empty()) {
    const Result<Latency> parsed = ParseLatency(CleanText(request.latency(), kMostOfWord));
    if (!parsed) return {StatusCode::INVALID_ARGUMENT, parsed.error().Line()};
    latency = *parsed;
  }
  if ((request.has_priority() && request.reset_priority()) || (request.has_weight() && request.reset_weight()) ||
      (latency && request.reset_latency())) {
    return {StatusCode::INVALID_ARGUMENT, "set and reset at once; give one or the other"};
  }
  if (request.has_priority() && !IsPriority(request.priority())) {
    return {StatusCode::INVALID_ARGUMENT,
            "priority " + std::to_string(request.priority()) + " is out of range; give a number from -100 to 100"};
  }
  if (request.has_weight()) {
    Status status = CheckNumber("weight", request.weight(), policy::kWeightLimits);
    if (!status.ok()) return status;
  }
  Selected selected;
  if (Status status = Select(by, request.selector(), selected); !status.ok()) return status;
  const std::vector<Client*>& clients = selected.clients;
  response.set_left_out(selected.left_out);
  const std::uint64_t began = MonotonicNs();
  const std::optional<int> priority = request.has_priority() ? std::optional<int>(request.priority()) : std::nullopt;
  const std::optional<std::uint32_t> weight =
      request.has_weight() ? std::optional<std::uint32_t>(request.weight()) : std::nullopt;
  const std::vector<Effective> then = core_.EffectiveIf(clients, [&](const Client& client) {
    ClientSettings settings = SettingsOf(client);
    if (sets_priority) (by.is_admin ? settings.admin : settings.owner) = priority;
    if (sets_weight) (by.is_admin ? settings.admin_weight : settings.owner_weight) = weight;
    if (sets_latency) (by.is_admin ? settings.admin_latency : settings.owner_latency) = latency;
    return settings;
  });
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const Client* const client = clients[i];
    const Effective& before = client->effective;
    const Effective& after = then[i];
    v1::ChangeResponse::Change& change = *response.add_changes();
    change.set_pid(client->identity.pid);
    change.set_priority_before(before.priority);
    change.set_priority_after(after.priority);
    change.set_weight_before(before.weight);
    change.set_weight_after(after.weight);
    change.set_latency_before(std::string(LatencyText(before.latency)));
    change.set_latency_after(std::string(LatencyText(after.latency)));
    change.set_hold_after(client->IsOnHold());
    const std::uint32_t uid = client->identity.uid;
    const Config& config = core_.Settings();
    if (sets_weight && after.weight_limited) {
      change.set_note("weight limited by " + CeilingText(uid, config.WeightCeiling(uid).has_value()));
    }
    if (sets_priority && after.limited) {
      change.set_note("limited by " + CeilingText(uid, config.PriorityCeiling(uid).has_value()));
    }
    const auto others_decide = [&](PrioritySource source) { return !by.is_admin || source == PrioritySource::kGroup; };
    if (latency && others_decide(after.latency_source)) NoteWhatGoesBefore("latency", after.latency_source, change);
    if (weight && others_decide(after.weight_source)) NoteWhatGoesBefore("weight", after.weight_source, change);
    if (priority && others_decide(after.source)) NoteWhatGoesBefore("priority", after.source, change);
  }
  if (request.dry_run()) return Status::OK;
  ChargeFor(by, clients.size());
  if (sets_priority) core_.SetPriority(clients, priority, by);
  if (sets_weight) core_.SetWeight(clients, weight, by);
  if (sets_latency) core_.SetLatency(clients, latency, by);
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
  Selected selected;
  if (Status status = Select(by, selector, selected); !status.ok()) return status;
  const std::vector<Client*>& clients = selected.clients;
  const auto stays_held = [&](const Client* client) { return !hold && !by.is_admin && client->hold; };
  if (std::all_of(clients.begin(), clients.end(),
                  [&](const Client* client) { return stays_held(client) && !client->owner_hold; })) {
    const std::string pid = std::to_string(clients.front()->identity.pid);
    return Denied(core_, by,
                  "pid " + pid +
                      " is held by an administrator, and only an administrator can release it; ask one to run "
                      "xschedctl release --pid " +
                      pid);
  }
  response.set_left_out(selected.left_out);
  const std::uint64_t began = MonotonicNs();
  for (const Client* client : clients) {
    v1::ChangeResponse::Change& change = *response.add_changes();
    change.set_pid(client->identity.pid);
    change.set_priority_before(client->effective.priority);
    change.set_priority_after(client->effective.priority);
    change.set_weight_before(client->effective.weight);
    change.set_weight_after(client->effective.weight);
    change.set_latency_before(std::string(LatencyText(client->effective.latency)));
    change.set_latency_after(change.latency_before());
    change.set_hold_after(hold || stays_held(client));
    if (client->IsOnHold() == hold && (!hold || client->hold == by.is_admin))
      change.set_note(hold ? "was on hold already" : "was not on hold");
    if (stays_held(client)) change.set_note("an administrator's hold stays");
    if (hold && !core_.Settings().enforce) change.set_note("not held: the daemon observes only ([daemon] enforce)");
    if (client->channel == nullptr) change.set_note("has no shared memory and cannot be gated");
  }
  if (dry_run) return Status::OK;
  ChargeFor(by, clients.size());
  core_.SetHold(clients, hold, by);
  response.set_applied_ns(AppliedNs(core_.Sched(), began));
  return Status::OK;
}

Status AdminOperations::GetCeiling(const Actor& by, const v1::GetCeilingRequest&, v1::GetCeilingResponse& response) {
  const OwnCeiling ceiling = OwnCeilingOf(by.uid, by.may_raise, core_.Settings());
  response.set_priority(ceiling.priority);
  response.set_weight(ceiling.weight);
  response.set_why(CeilingText(by.uid, ceiling.is_configured));
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
  if (Result<void> taken = TakeSettings(request, settings); !taken) {
    return {StatusCode::INVALID_ARGUMENT, taken.error().Line()};
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
  response.set_decision_p50_ns(core_.Sched().Records().Latency().Quantile(0.50));
  response.set_decision_p99_ns(core_.Sched().Records().Latency().Quantile(0.99));
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
      .histories = core_.Sched().Records().Histories(),
      .config = core_.Settings(),
      .now_ns = MonotonicNs(),
      .only_uid = by.is_admin || by.may_read_all ? std::nullopt : std::optional<std::uint32_t>(by.uid),
      .is_admin = by.is_admin,
  };
  if (!by.is_admin) quotas_.Charge(by.uid, QuotaKind::kCalls, kMoreForExplain);
  const std::vector<Client*> clients = core_.Clients().FindPid(request.pid());
  const PastClient* const past = core_.Sched().Records().Past().Find(request.pid());
  if (clients.empty() && past == nullptr) {
    return {StatusCode::NOT_FOUND, "no client has pid " + std::to_string(request.pid()) + ", nor had one of the last " +
                                       std::to_string(PastClients::kClients) +
                                       " that ended; xschedctl ps shows who is connected"};
  }
  const ClientIdentity& who = clients.empty() ? past->identity : clients.back()->identity;
  if (!by.is_admin && !by.may_read_all && who.uid != by.uid) return NotYours(core_, by, who);
  FillExplanation(clients.empty() ? ExplainClient(*past, request.seconds(), context)
                                  : ExplainClient(*clients.back(), request.seconds(), context),
                  response);
  response.set_policy(std::string(policy::Text(core_.Settings().policy.name)));
  return Status::OK;
}

Status AdminOperations::GetConfig(const Actor&, const v1::GetConfigRequest&, v1::GetConfigResponse& response) {
  FillConfiguration(core_.Source().path,
                    DescribeLive(core_.Settings(), core_.FilePolicy(), !core_.Source().policy_override.empty(),
                                 core_.Source().software_gpu),
                    response);
  return Status::OK;
}

Status AdminOperations::Reload(const Actor& by, const v1::ReloadRequest& request, v1::ReloadResponse& response) {
  const std::vector<Setting> before = Describe(core_.Settings());
  if (request.dry_run()) {
    const auto fresh = core_.Source().Load();
    if (!fresh) return {StatusCode::FAILED_PRECONDITION, fresh.error().Line() + "; a reload would change nothing"};
    FillChanges(before, Describe(*fresh), response);
    return Status::OK;
  }
  const auto notes = core_.Reload(by);
  if (!notes) return {StatusCode::FAILED_PRECONDITION, notes.error().Line() + "; the old configuration stays"};
  for (const std::string& note : *notes)
    response.add_notes(note);
  FillChanges(before, Describe(core_.Settings()), response);
  return Status::OK;
}

Status AdminOperations::Drain(const Actor& by, const v1::DrainRequest& request, v1::DrainResponse& response) {
  if (!request.dry_run()) {
    connections_.Drain();
    core_.Drain(by);
  }
  response.set_clients(static_cast<std::uint32_t>(core_.Clients().Clients().size()));
  return Status::OK;
}

}  // namespace xschedd
