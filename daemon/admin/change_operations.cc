// The calls that change clients: priority, weight, latency, hold.
#include <algorithm>

#include "common/clock.h"
#include "common/memory_limit.h"
#include "daemon/admin/admin_operations.h"
#include "daemon/admin/ownership.h"
#include "daemon/admin/selector.h"
#include "daemon/registry/effective_words.h"
#include "daemon/scheduler/memory_words.h"

namespace xschedd {
namespace {

using grpc::Status;
using grpc::StatusCode;

std::uint64_t AppliedNs(const Scheduler& scheduler, std::uint64_t began_ns) {
  // If no gate had to be written, the change was in effect when the call began.
  return std::max(scheduler.LastWriteNs(), began_ns);
}

// Says why a setting that is kept is not in effect now.
void NoteOverridden(const std::string& what, PrioritySource source, v1::ChangeResponse::Change& change) {
  if (source == PrioritySource::kAdmin) change.set_note("kept; an administrator's " + what + " overrides it");
  if (source == PrioritySource::kClaim) change.set_note("kept; the " + what + " of its claim overrides it");
  if (source == PrioritySource::kGroup) change.set_note("kept; the " + what + " of its group overrides it");
  if (source == PrioritySource::kRule) change.set_note("kept; a rule of the configuration sets the " + what);
}

Status CheckNumber(const char* name, std::uint32_t value, policy::Limits limits) {
  if (value >= limits.min && value <= limits.max) return Status::OK;
  return {StatusCode::INVALID_ARGUMENT, std::string(name) + " " + std::to_string(value) +
                                            " is out of range; give a number from " + std::to_string(limits.min) +
                                            " to " + std::to_string(limits.max)};
}

}  // namespace

Status AdminOperations::Select(const Actor& by, const v1::Selector& selector, Selected& selected) {
  if (IsEmpty(selector)) {
    return {StatusCode::INVALID_ARGUMENT,
            "the selector names no clients; give a pid, uid, group, cgroup or exe, or say all"};
  }
  const Client* other = nullptr;
  for (const auto& [id, client] : core_.Clients().Clients()) {
    if (!Matches(selector, *client)) continue;
    if (MayChange(by, *client)) {
      selected.clients.push_back(client.get());
    } else {
      other = client.get();
      ++selected.left_out;
    }
  }
  // A caller that names a process means that process, and gets an error. One that names a kind of client means its own
  // clients of that kind.
  if (other != nullptr && !selector.pid().empty()) return NotYours(core_, by, other->identity, *other->principal);
  if (other != nullptr && selected.clients.empty()) {
    return Denied(core_, by,
                  Text(PrincipalOf(by)) + " has no client that matches, and may not change the " +
                      std::to_string(selected.left_out) +
                      " of others on client.sock; ask an administrator (admin.sock)");
  }
  if (selected.clients.empty()) {
    return {StatusCode::NOT_FOUND,
            "no client matches " + Describe(selector) + "; xschedctl ps lists the connected clients"};
  }
  return Status::OK;
}

Status AdminOperations::Set(const Actor& by, const v1::SetRequest& request, v1::ChangeResponse& response) {
  const bool sets_priority = request.has_priority() || request.reset_priority();
  const bool sets_weight = request.has_weight() || request.reset_weight();
  const bool sets_latency = !request.latency().empty() || request.reset_latency();
  // A user has set none: with other resets there is nothing to do.
  const bool resets_more = request.reset_priority() || request.reset_weight() || request.reset_latency();
  const bool resets_memory = request.reset_memory_limit() && (by.is_admin || !resets_more);
  const bool sets_memory = request.has_memory_limit() || resets_memory;
  if (!sets_priority && !sets_weight && !sets_latency && !sets_memory) {
    return {StatusCode::INVALID_ARGUMENT,
            "nothing to set; give a priority, a weight, a latency, a memory limit or what to reset"};
  }
  std::optional<Latency> latency;
  if (!request.latency().empty()) {
    const Result<Latency> parsed = ParseLatency(CleanText(request.latency(), kMaxWordBytes));
    if (!parsed) return {StatusCode::INVALID_ARGUMENT, parsed.error().Line()};
    latency = *parsed;
  }
  if ((request.has_priority() && request.reset_priority()) || (request.has_weight() && request.reset_weight()) ||
      (latency && request.reset_latency()) || (request.has_memory_limit() && request.reset_memory_limit())) {
    return {StatusCode::INVALID_ARGUMENT, "the request both sets and resets a value; give one or the other"};
  }
  if (request.has_priority() && !IsPriority(request.priority())) {
    return {StatusCode::INVALID_ARGUMENT,
            "priority " + std::to_string(request.priority()) + " is out of range; give a number from -100 to 100"};
  }
  if (request.has_weight()) {
    Status status = CheckNumber("weight", request.weight(), policy::kWeightLimits);
    if (!status.ok()) return status;
  }
  if (sets_memory && !by.is_admin) {
    return Denied(
        core_, by,
        "only an administrator may limit the memory of a running client; start the program with xschedctl run "
        "--memory, or ask an administrator (admin.sock)");
  }
  if (request.has_memory_limit() && request.memory_limit() != 0) {
    if (const auto checked = CheckMemoryLimit(request.memory_limit()); !checked)
      return {StatusCode::INVALID_ARGUMENT, checked.error().Line()};
  }
  Selected selected;
  if (Status status = Select(by, request.selector(), selected); !status.ok()) return status;
  const std::vector<Client*>& clients = selected.clients;
  response.set_left_out(selected.left_out);
  const std::uint64_t began = MonotonicNs();
  const std::optional<std::uint64_t> memory =
      request.has_memory_limit() ? std::optional<std::uint64_t>(request.memory_limit()) : std::nullopt;
  const std::optional<int> priority = request.has_priority() ? std::optional<int>(request.priority()) : std::nullopt;
  const std::optional<std::uint32_t> weight =
      request.has_weight() ? std::optional<std::uint32_t>(request.weight()) : std::nullopt;
  const std::vector<Effective> then = core_.EffectiveIf(clients, [&](const Client& client) {
    ClientSettings settings = SettingsOf(client);
    if (sets_priority) (by.is_admin ? settings.admin : settings.owner) = priority;
    if (sets_weight) (by.is_admin ? settings.admin_weight : settings.owner_weight) = weight;
    if (sets_latency) (by.is_admin ? settings.admin_latency : settings.owner_latency) = latency;
    if (sets_memory) settings.admin_memory_limit = memory;
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
    change.set_memory_limit_before(before.memory_limit);
    change.set_memory_limit_after(after.memory_limit);
    change.set_hold_after(client->IsOnHold());
    const Config& config = core_.Settings();
    if (sets_weight && after.weight_limited)
      change.set_note("weight limited by " + WeightCeilingText(*client, after, config));
    if (sets_priority && after.limited) change.set_note("limited by " + PriorityCeilingText(*client, after, config));
    const auto others_decide = [&](PrioritySource source) { return !by.is_admin || source == PrioritySource::kGroup; };
    if (latency && others_decide(after.latency_source)) NoteOverridden("latency", after.latency_source, change);
    if (weight && others_decide(after.weight_source)) NoteOverridden("weight", after.weight_source, change);
    if (priority && others_decide(after.source)) NoteOverridden("priority", after.source, change);
    if (after.memory_limit != 0 && sets_memory) {
      if (const std::string why = MemoryNotApplied(*client); !why.empty()) change.set_note("not limited: " + why);
    }
  }
  if (request.dry_run()) return Status::OK;
  ChargeFor(by, clients.size());
  if (sets_priority) core_.SetPriority(clients, priority, by);
  if (sets_weight) core_.SetWeight(clients, weight, by);
  if (sets_latency) core_.SetLatency(clients, latency, by);
  if (sets_memory) core_.SetMemoryLimit(clients, memory, by);
  response.set_applied_ns(AppliedNs(core_.GetScheduler(), began));
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
                      "xschedctl release " +
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
    change.set_memory_limit_before(client->effective.memory_limit);
    change.set_memory_limit_after(client->effective.memory_limit);
    change.set_hold_after(hold || stays_held(client));
    if (client->IsOnHold() == hold && (!hold || client->hold == by.is_admin))
      change.set_note(hold ? "was on hold already" : "was not on hold");
    if (stays_held(client)) change.set_note("an administrator's hold stays");
    if (hold && !core_.Settings().enforce)
      change.set_note("not held: the daemon only observes ([daemon] enforce = false)");
    if (client->channel == nullptr) change.set_note("cannot be held: it has no shared memory");
  }
  if (dry_run) return Status::OK;
  ChargeFor(by, clients.size());
  core_.SetHold(clients, hold, by);
  response.set_applied_ns(AppliedNs(core_.GetScheduler(), began));
  return Status::OK;
}

}  // namespace xschedd
