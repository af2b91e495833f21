// Core's part in a restart: restores the clients, settings and policy of an earlier daemon. Thread rule: the daemon's
// one thread.
#include "common/clock.h"
#include "daemon/core.h"
#include "daemon/policy/benefit.h"
#include "daemon/registry/effective.h"

namespace xschedd {
namespace {

void Apply(const SetByOthers& set, Client& client) {
  client.admin = set.settings.admin;
  client.admin_weight = set.settings.admin_weight;
  client.owner = set.settings.owner;
  client.owner_weight = set.settings.owner_weight;
  client.admin_latency = set.settings.admin_latency;
  client.admin_memory_limit = set.settings.admin_memory_limit;
  client.owner_latency = set.settings.owner_latency;
  client.hold = set.hold;
  client.owner_hold = set.owner_hold;
}

}  // namespace

void Core::RestorePolicy(const policy::Settings& settings) {
  config_.policy = settings;
  ApplyPolicy();
  Journal::PolicyRestored(settings);
}

Client& Core::RestoreClient(RestoredClient restored) {
  const std::uint64_t now = MonotonicNs();
  const std::uint64_t since = restored.connected_ns != 0 ? std::min(restored.connected_ns, now) : now;
  Identify(restored.fresh.identity);
  Client& client = registry_.Add(std::move(restored.fresh), since);
  SetClaim(client, ClaimOf(client));
  Apply(restored.set, client);
  client.default_stream_deadline_us = restored.default_stream_deadline_us;
  client.late_total = restored.late_total;
  for (const Queue& queue : restored.queues)
    client.queues.emplace(queue.id, queue);
  client.own = client.effective = EffectiveOf(client, config_);
  registry_.MoveToGroup(client, GroupNameOf(client, config_), GroupNamerOf(client, config_));
  policy::Recall(client.group->memory.benefit, restored.others_mode);
  for (NewDevice& device : restored.devices) {
    const auto attachment = registry_.Attach(client, std::move(device));
    if (!attachment) continue;  // no daemon writes such an attachment
    (*attachment)->is_restored = true;
    (*attachment)->history.Begin(now);
    scheduler_.Records().Metrics().Attached(**attachment, now);
    memory_.Begin(**attachment);
  }
  UpdateMembers(*client.group, "as it was before the restart", Journal::LinesOf::kItself);
  Journal::TakenOver(client);
  if (client.channel != nullptr) loop_.Watch(client);
  scheduler_.Changed(client);
  return client;
}

void Core::RestoreDone() {
  are_memory_limits_changed_ = true;
  DecideNow();
  for (const auto& [id, client] : registry_.Clients()) {
    if (client->channel == nullptr) continue;
    scheduler_.AlignBoard(*client);
    memory_.WriteUnattached(*client);
  }
}

void Core::ResumeClient(Client& client, NewClient fresh) {
  ClientIdentity& who = client.identity;
  who.exe = std::move(fresh.identity.exe);
  who.cgroup = std::move(fresh.identity.cgroup);
  who.is_cgroup_exact = fresh.identity.is_cgroup_exact;
  who.place = std::move(fresh.identity.place);
  who.claim_socket = fresh.identity.claim_socket;
  Identify(who);
  who.may_raise = fresh.identity.may_raise;
  SetClaim(client, ClaimOf(client));
  client.group_name = std::move(fresh.group_name);
  client.hint = fresh.hints.priority;
  client.hint_weight = fresh.hints.weight;
  client.hint_latency = fresh.hints.latency;
  client.own_memory_limit = fresh.own_memory_limit;
  client.runtime = std::move(fresh.runtime);
  client.route = std::move(fresh.route);
  client.version = std::move(fresh.version);
  (void)registry_.SetDeadline(client, fresh.hints.deadline_us.value_or(0), std::nullopt);
  UpdateEffective(client, "hints of its session after the restart");
  UpdateGroup(client);
  journal_.Reconnected(client);
  scheduler_.Changed(client);
  DecideSoon();
  NoteChange(client, Urgency::kSoon);
}

void Core::ResumeDone(Client& client) {
  registry_.RemoveRestoredQueues(client);
  scheduler_.Changed(client);
  NoteChange(client, Urgency::kSoon);
}

void Core::RestoreSettings(Client& client, const SetByOthers& set, policy::BenefitMemory::Mode others_mode) {
  Apply(set, client);
  UpdateEffective(client, "as it was set before the restart");
  policy::Recall(client.group->memory.benefit, others_mode);
  scheduler_.Changed(client);
  DecideSoon();
  NoteChange(client, Urgency::kSoon);
}

}  // namespace xschedd
