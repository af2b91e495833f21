#include "daemon/admin/conversion.h"

#include "common/memory_limit.h"
#include "daemon/config/settings_message.h"
#include "daemon/policy/benefit.h"
#include "daemon/scheduler/memory_words.h"
#include "daemon/scheduler/queue_priority_words.h"
#include "daemon/scheduler/slice_words.h"

namespace xschedd {
namespace {

v1::PrioritySource ToMessage(PrioritySource source) {
  switch (source) {
    case PrioritySource::kDefault:
      return v1::PRIORITY_SOURCE_UNSPECIFIED;
    case PrioritySource::kAdmin:
      return v1::PRIORITY_SOURCE_ADMIN;
    case PrioritySource::kRule:
      return v1::PRIORITY_SOURCE_RULE;
    case PrioritySource::kHint:
      return v1::PRIORITY_SOURCE_HINT;
    case PrioritySource::kOwner:
      return v1::PRIORITY_SOURCE_OWNER;
    case PrioritySource::kGroup:
      return v1::PRIORITY_SOURCE_GROUP;
    case PrioritySource::kClaim:
      return v1::PRIORITY_SOURCE_CLAIM;
  }
  return v1::PRIORITY_SOURCE_UNSPECIFIED;
}

v1::ClientState StateOf(const Attachment& attachment) {
  switch (attachment.PhaseNow()) {
    case Phase::kUntracked:
      return v1::CLIENT_STATE_UNTRACKED;
    case Phase::kSilent:
      return v1::CLIENT_STATE_SILENT;
    case Phase::kIdle:
      return v1::CLIENT_STATE_IDLE;
    case Phase::kRunning:
      return v1::CLIENT_STATE_RUNNING;
    case Phase::kHeld:
      return attachment.reason.is_observed ? v1::CLIENT_STATE_OBSERVED : v1::CLIENT_STATE_HELD;
  }
  return v1::CLIENT_STATE_UNSPECIFIED;
}

std::string HeldFor(const Attachment& attachment) {
  if (!attachment.gate.held) return {};
  if (attachment.gate.why == policy::Why::kHold) return "hold";
  return "pid " + std::to_string(attachment.reason.pid);
}

void FillClientDevice(const Attachment& attachment, std::uint64_t now_ns, v1::ClientDevice& out) {
  out.set_slot(attachment.slot);
  out.set_device(attachment.device->pci_address);
  out.set_state(StateOf(attachment));
  out.set_held_ns(attachment.HeldNsAt(now_ns));
  out.set_window_us(attachment.gate.window_us);
  out.set_held_for(HeldFor(attachment));
  out.set_slice_wanted_us(attachment.gate.slice_us);
  if (attachment.client->channel == nullptr) return;
  const LedgerSnapshot ledger = attachment.client->channel->Ledger().Read(attachment.slot);
  out.set_gpu_time_ns(ledger.gpu_time_ns);
  out.set_submitted(ledger.submitted);
  out.set_completed(ledger.completed);
  out.set_in_flight(ledger.in_flight);
  out.set_window_limit(ledger.window_limit);
  out.set_passthrough(ledger.passthrough);
  out.set_slice_us(attachment.client->channel->Ledger().Slice(attachment.slot).us);
  out.set_slice(SliceText(attachment));
  if (const auto memory = attachment.client->channel->Ledger().Memory(attachment.slot)) {
    out.set_memory_bytes(memory->bytes);
    out.set_memory_refused(memory->refused);
  }
  out.set_memory_limit(LimitHere(attachment).bytes);
  if (out.state() == v1::CLIENT_STATE_HELD && !ledger.has_waiters && ledger.in_flight != 0 && ledger.passthrough != 0) {
    out.set_state(v1::CLIENT_STATE_PASSING);
  }
  const History::Recently recent = attachment.history.Recent({now_ns, ledger.gpu_time_ns});
  out.set_recent_ns(recent.time_ns);
  out.set_recent_gpu_ns(recent.gpu_ns);
}

template <typename List>
void FillPassed(const PassedCounts& counts, List& out) {
  for (const auto& [rule, count] : counts) {
    v1::Passed& passed = *out.Add();
    passed.set_rule(rule);
    passed.set_count(count);
  }
}

void FillBenefit(const policy::BenefitMemory& memory, policy::BenefitMemory::Mode compared, v1::Benefit& out) {
  const policy::BenefitMemory::Comparison& known = memory.Of(compared);
  out.set_mode(std::string(policy::ModeText(memory.settled)));
  out.set_slower_percent(policy::SlowerPercent(policy::SlowerBy(known)));
  out.set_tail_percent(policy::SlowerPercent(known.tail));
  out.set_comparisons(known.pairs);
  out.set_held_percent(100 * memory.cost);
  out.set_cost_percent(policy::CostPercent(memory, compared).value_or(0));
  out.set_is_settled(policy::IsSettled(memory));
  out.set_is_searching(policy::IsSearching(memory));
}

void FillMemoryLimit(const Client& client, v1::MemoryLimit& out) {
  const Effective& set = client.effective;
  const bool is_own = SmallerLimit(set.memory_limit, client.own_memory_limit) != set.memory_limit;
  out.set_bytes(is_own ? client.own_memory_limit : set.memory_limit);
  out.set_source(is_own ? v1::PRIORITY_SOURCE_HINT : ToMessage(set.memory_source));
  out.set_is_shared(!is_own && set.memory_source == PrioritySource::kClaim);
  if (!is_own) out.set_not_applied(MemoryNotApplied(client));
}

void FillClientClaim(const ClaimPtr& claim, v1::ClientClaim& out) {
  out.set_name(claim->name);
  out.set_text(LabelText(*claim));
  for (const auto& [name, value] : claim->labels)
    (*out.mutable_labels())[name] = value;
}

}  // namespace

void FillClaim(const Claim& claim, std::size_t clients, std::uint64_t now_ns, v1::Claim& out) {
  out.set_name(claim.name);
  out.set_cgroup(claim.cgroup);
  out.set_has_socket(claim.has_socket);
  if (claim.priority) out.set_priority(*claim.priority);
  if (claim.ceiling) out.set_ceiling(*claim.ceiling);
  if (claim.weight) out.set_weight(*claim.weight);
  if (claim.weight_ceiling) out.set_weight_ceiling(*claim.weight_ceiling);
  if (claim.latency) out.set_latency(std::string(LatencyText(*claim.latency)));
  if (claim.memory_limit) out.set_memory_limit(*claim.memory_limit);
  out.set_group(claim.group);
  for (const auto& [name, value] : claim.labels)
    (*out.mutable_labels())[name] = value;
  out.set_ttl_ms(claim.ttl_ns / policy::kNsPerMs);
  out.set_cgroup_inode(claim.cgroup_inode);
  if (claim.expires_ns > now_ns) out.set_expires_in_ms((claim.expires_ns - now_ns) / policy::kNsPerMs);
  out.set_clients(static_cast<std::uint32_t>(clients));
}

void FillClaimReport(const ClaimAccount& account, std::size_t clients, v1::ClaimReport& out) {
  out.set_name(account.claim->name);
  for (const auto& [name, value] : account.claim->labels)
    (*out.mutable_labels())[name] = value;
  out.set_began_unix_ms(account.began_unix_ms);
  out.set_ended_unix_ms(account.ended_unix_ms);
  out.set_end_reason(account.end_reason);
  out.set_gpu_time_ns(account.usage.gpu_ns);
  out.set_held_ns(account.usage.held_ns);
  out.set_launches(account.usage.launches);
  out.set_untracked_ns(account.usage.untracked_ns);
  out.set_memory_peak_bytes(account.memory_peak_bytes);
  out.set_memory_refused(account.usage.memory_refused);
  out.set_clients(static_cast<std::uint32_t>(clients));
}

void FillClient(const Client& client, const Scheduler& scheduler, std::uint64_t now_ns, v1::Client& out) {
  const ClientIdentity& who = client.identity;
  out.set_id(client.id);
  out.set_pid(who.pid);
  out.set_uid(who.uid);
  out.set_gid(who.gid);
  out.set_cgroup(who.cgroup);
  out.set_exe(who.exe);
  out.set_command(who.command);
  out.set_group(client.group->name);
  if (client.hint) out.set_priority_hint(*client.hint);
  if (client.admin) out.set_priority_admin(*client.admin);
  out.set_priority_effective(client.effective.priority);
  out.set_priority_source(ToMessage(client.effective.source));
  out.set_hold(client.IsOnHold());
  out.set_hold_by_admin(client.hold);
  if (client.owner) out.set_priority_owner(*client.owner);
  for (const auto& [slot, attachment] : client.attachments)
    FillClientDevice(*attachment, now_ns, *out.add_devices());
  for (const auto& [id, queue] : client.queues) {
    v1::Queue& listed = *out.add_queues();
    listed.set_id(queue.id);
    listed.set_slot(queue.slot);
    listed.set_native_priority(queue.native_priority);
    listed.set_launches(queue.launches);
    listed.set_completions(queue.completions);
  }
  out.set_runtime(client.runtime);
  out.set_route(client.route);
  out.set_client_version(client.version);
  out.set_connected_ms((now_ns - client.connected_ns) / policy::kNsPerMs);
  out.set_weight(client.effective.weight);
  out.set_latency(std::string(LatencyText(client.effective.latency)));
  out.set_late(client.late_total);
  out.set_queue_priority(QueuePriorityText(client, scheduler.Settings()));
  FillPassed(client.passed, *out.mutable_passed());
  const policy::BenefitMemory& benefit = *client.group->memory.benefit;
  const bool is_measured = scheduler.Settings().tolerance_percent != 0 && client.effective.latency == Latency::kAuto;
  if (client.claim != nullptr) FillClientClaim(client.claim, *out.mutable_claim());
  if (client.effective.memory_limit != 0 || client.own_memory_limit != 0)
    FillMemoryLimit(client, *out.mutable_memory_limit());
  const auto compared = policy::MostTelling(benefit);
  if (is_measured && compared) FillBenefit(benefit, *compared, *out.mutable_benefit());
}

void FillDevice(const Device& device, v1::Device& out) {
  out.set_pci_address(device.pci_address);
  out.set_name(device.name);
  out.set_vendor(device.vendor);
  out.set_compute_units(device.compute_units);
  std::uint32_t busy = 0;
  std::uint32_t held = 0;
  for (const Attachment* attachment : device.attachments) {
    busy += attachment->busy ? 1 : 0;
    held += attachment->gate.held ? 1 : 0;
  }
  out.set_clients(static_cast<std::uint32_t>(device.attachments.size()));
  out.set_busy(busy);
  out.set_held(held);
}

void FillPolicy(const policy::Settings& settings, v1::Policy& out) {
  out.set_name(std::string(policy::Text(settings.name)));
  PutSettings(settings, out);
  for (const std::string_view name : policy::NameTexts())
    out.add_available(std::string(name));
}

void FillEvent(const Event& event, v1::Event& out) {
  out.set_time_ns(event.time_ns);
  out.set_unix_ms(event.unix_ms);
  out.set_kind(static_cast<v1::EventKind>(event.kind));
  out.set_client_id(event.client_id);
  out.set_pid(event.pid);
  if (event.device != nullptr) out.set_device(*event.device);
  out.set_reason(event.ReasonText());
  out.set_priority(event.priority);
  out.set_weight(event.weight);
  if (event.claim != nullptr) {
    out.set_claim(event.claim->name);
    out.set_claim_text(LabelText(*event.claim));
    for (const auto& [name, value] : event.claim->labels)
      (*out.mutable_labels())[name] = value;
  }
  if (event.kind != EventKind::kHeld) return;
  out.set_rule(std::string(RuleName(event.reason.why)));
  out.set_for_pid(event.reason.pid);
  out.set_for_priority(event.reason.priority);
}

void FillExplanation(const Explanation& explanation, v1::ExplainResponse& out) {
  out.set_command(explanation.command);
  out.set_priority(explanation.effective.priority);
  out.set_weight(explanation.effective.weight);
  if (explanation.effective.claim != nullptr) FillClientClaim(explanation.effective.claim, *out.mutable_claim());
  out.set_is_gone(explanation.ended_ns != 0);
  out.set_ended_ns(explanation.ended_ns);
  out.set_time_ns(explanation.to_ns);
  out.set_observed_ns(explanation.observed_ns);
  out.set_held_ns(explanation.held_ns);
  out.set_summary(explanation.summary);
  out.set_benefit(explanation.benefit);
  out.set_queue_priority(explanation.queue_priority);
  for (const ExplainedDevice& device : explanation.devices) {
    const Account& account = device.account;
    const auto time = [&account](Phase phase) { return account.phase_ns[static_cast<std::size_t>(phase)]; };
    v1::ExplainResponse::DeviceTime& to = *out.add_devices();
    to.set_device(device.address);
    to.set_observed_ns(account.to_ns - account.from_ns);
    to.set_running_ns(time(Phase::kRunning));
    to.set_held_ns(time(Phase::kHeld));
    to.set_idle_ns(time(Phase::kIdle));
    to.set_untracked_ns(time(Phase::kUntracked));
    to.set_silent_ns(time(Phase::kSilent));
    to.set_gpu_ns(account.gpu_ns);
    to.set_gpu_all_ns(device.gpu_all_ns);
    to.set_gpu_level_ns(device.gpu_level_ns);
    to.set_weight_all(device.weight_level);
    to.set_slice(device.slice);
    to.set_memory(device.memory);
    to.set_late(account.late);
  }
  for (const ExplainedCause& cause : explanation.causes) {
    v1::ExplainResponse::Cause& to = *out.add_causes();
    to.set_device(cause.device);
    const std::string_view rule = cause.total.is_others ? "others" : RuleName(cause.total.reason.why);
    to.set_rule(std::string(rule));
    to.set_reason(cause.text);
    to.set_for_pid(cause.total.reason.pid);
    to.set_count(cause.total.count);
    to.set_total_ns(cause.total.total_ns);
    to.set_longest_ns(cause.total.longest_ns);
  }
  for (const ExplainedSpan& span : explanation.spans) {
    v1::ExplainResponse::Span& to = *out.add_held();
    to.set_start_ns(span.span.start_ns);
    to.set_end_ns(span.span.end_ns);
    to.set_device(span.device);
    to.set_reason(span.span.reason.Text());
  }
  for (const Remedy& remedy : explanation.remedies) {
    v1::ExplainResponse::Remedy& to = *out.add_remedies();
    to.set_text(remedy.text);
    to.set_command(remedy.command);
  }
  FillPassed(explanation.passed, *out.mutable_passed());
}

static_assert(static_cast<int>(EventKind::kClientConnected) == v1::EVENT_KIND_CLIENT_CONNECTED);
static_assert(static_cast<int>(EventKind::kOpened) == v1::EVENT_KIND_OPENED);
static_assert(static_cast<int>(EventKind::kRefused) == v1::EVENT_KIND_REFUSED);
static_assert(static_cast<int>(EventKind::kQueueDestroyed) == v1::EVENT_KIND_QUEUE_DESTROYED);
static_assert(static_cast<int>(EventKind::kTracked) == v1::EVENT_KIND_TRACKED);
static_assert(static_cast<int>(EventKind::kWeight) == v1::EVENT_KIND_WEIGHT);
static_assert(static_cast<int>(EventKind::kSilent) == v1::EVENT_KIND_SILENT);
static_assert(static_cast<int>(EventKind::kLever) == v1::EVENT_KIND_LEVER);
static_assert(static_cast<int>(EventKind::kClaim) == v1::EVENT_KIND_CLAIM);
static_assert(static_cast<int>(EventKind::kMemory) == v1::EVENT_KIND_MEMORY);

}  // namespace xschedd
