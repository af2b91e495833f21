#include "daemon/journal.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/byte_size.h"
#include "common/clock.h"
#include "daemon/policy/benefit.h"
#include "daemon/registry/effective_words.h"
#include "daemon/scheduler/memory_words.h"

namespace xschedd {
namespace {

// How many clients a line about an operation names.
constexpr std::size_t kNamedClients = 16;

Event EventNow(EventKind kind, std::string text) {
  Event event;
  event.kind = kind;
  event.time_ns = MonotonicNs();
  event.text = std::move(text);
  return event;
}

// "24G", "none"
std::string LimitText(std::uint64_t bytes) {
  return bytes == 0 ? "none" : ByteSizeText(bytes);
}

// ` place="container 0123456789ab"`; empty for the host.
std::string PlaceField(const Client& client) {
  const std::string text = InPlaceText(client.principal->place);
  return text.empty() ? text : " place=\"" + text.substr(std::string_view(" in ").size()) + "\"";
}

}  // namespace

bool Journal::TakeLine(const Principal& owner, std::string* note) {
  const auto left_out = client_lines_.Take(owner, MonotonicNs());
  *note = left_out.value_or(0) == 0 ? "" : " lines_left_out_of_this_user=" + std::to_string(*left_out);
  return left_out.has_value();
}

bool Journal::TakeDetail(LinesOf lines, const Client& client, std::string* note) {
  if (lines == LinesOf::kItself) return TakeLine(*client.principal, note);
  return detail_lines_.Take(MonotonicNs());
}

// ---- one client

void Journal::Connected(const Client& client) {
  const ClientIdentity& who = client.identity;
  if (std::string note; TakeLine(*client.principal, &note)) {
    SPDLOG_INFO(
        "client connected id={} pid={} uid={}{} exe=\"{}\" cgroup=\"{}\" group=\"{}\" priority={} source={}{}{}{}",
        client.id, who.pid, who.uid, PlaceField(client), who.exe, who.cgroup, client.group->name,
        client.effective.priority, SourceText(client.effective.source),
        client.claim == nullptr ? "" : " claim=\"" + client.claim->name + "\"",
        client.channel == nullptr ? " shared_memory=no" : "", note);
  }
  events_.Add(ClientEvent(EventKind::kClientConnected, client, MonotonicNs(), who.exe));
}

void Journal::Disconnected(const Client& client, const std::string& why) {
  if (std::string note; TakeLine(*client.principal, &note)) {
    SPDLOG_INFO("client gone id={} pid={} uid={}{} reason=\"{}\"{}", client.id, client.identity.pid,
                client.identity.uid, PlaceField(client), why, note);
  }
  events_.Add(ClientEvent(EventKind::kClientGone, client, MonotonicNs(), why));
}

void Journal::TakenOver(const Client& client) {
  SPDLOG_DEBUG("client taken over id={} pid={} uid={} group=\"{}\" priority={} hold={}", client.id, client.identity.pid,
               client.identity.uid, client.group->name, client.effective.priority, client.IsOnHold());
}

void Journal::Reconnected(const Client& client) {
  const ClientIdentity& who = client.identity;
  if (std::string note; TakeLine(*client.principal, &note)) {
    SPDLOG_INFO("client is back id={} pid={} uid={} exe=\"{}\" priority={}{}", client.id, who.pid, who.uid, who.exe,
                client.effective.priority, note);
  }
  events_.Add(ClientEvent(EventKind::kClientConnected, client, MonotonicNs(), who.exe));
}

void Journal::Recalled(const Client& client, policy::BenefitMemory::Mode answer, std::uint64_t pid) {
  const std::string why = fmt::format("begins with what was learnt of pid {}, which has the same command", pid);
  if (std::string note; TakeLine(*client.principal, &note)) {
    SPDLOG_INFO("lever pid={} group={} mode={} reason=\"{}\"{}", client.identity.pid, client.group->name,
                policy::ModeText(answer), why, note);
  }
  events_.Add(ClientEvent(EventKind::kLever, client, MonotonicNs(), why));
}

void Journal::Attached(const Attachment& attachment, std::uint64_t now_ns) {
  const Device& device = *attachment.device;
  const ClientIdentity& who = attachment.client->identity;
  if (std::string note; TakeLine(*attachment.client->principal, &note)) {
    SPDLOG_INFO("device attached pid={} slot={} device={} name=\"{}\"{}{}", who.pid, attachment.slot,
                device.pci_address, device.name, attachment.is_under_mps ? " under_mps=yes" : "", note);
  }
  Event event = DeviceEvent(EventKind::kDeviceAttached, attachment, now_ns);
  event.text = device.name;
  events_.Add(std::move(event));
}

void Journal::Queue(EventKind kind, const Client& client, std::uint64_t queue) {
  events_.Add(ClientEvent(kind, client, MonotonicNs(), "queue " + std::to_string(queue)));
}

bool Journal::Changed(const Client& client, const Effective& before, const std::string& why, LinesOf lines) {
  const Effective& after = client.effective;
  const std::uint64_t pid = client.identity.pid;
  const bool is_other_priority = after.priority != before.priority;
  const bool is_other_weight = after.weight != before.weight;
  const bool is_other_latency = after.latency != before.latency;
  const bool is_other_limit = after.memory_limit != before.memory_limit;
  if (!is_other_priority && !is_other_weight && !is_other_latency && !is_other_limit) return false;
  std::string note;
  const bool is_logged = TakeDetail(lines, client, &note);
  if (is_other_priority) {
    if (is_logged) {
      SPDLOG_INFO("priority changed pid={} from={} to={} source={} limited={} reason=\"{}\"{}", pid, before.priority,
                  after.priority, SourceText(after.source), after.limited, why, note);
    }
    events_.Add(ClientEvent(EventKind::kPriority, client, MonotonicNs(), why));
  }
  if (is_other_weight) {
    if (is_logged) {
      SPDLOG_INFO("weight changed pid={} from={} to={} source={} limited={} reason=\"{}\"{}", pid, before.weight,
                  after.weight, SourceText(after.weight_source), after.weight_limited, why, note);
    }
    events_.Add(ClientEvent(EventKind::kWeight, client, MonotonicNs(), why));
  }
  if (is_other_latency) {
    const std::string latency(LatencyText(after.latency));
    if (is_logged) {
      SPDLOG_INFO("latency changed pid={} to={} source={} reason=\"{}\"{}", pid, latency,
                  SourceText(after.latency_source), why, note);
    }
    events_.Add(ClientEvent(EventKind::kLever, client, MonotonicNs(), "latency " + latency + ": " + why));
  }
  if (is_other_limit) {
    const std::string limit = LimitText(after.memory_limit);
    if (is_logged) {
      SPDLOG_INFO("memory limit changed pid={} from={} to={} source={} reason=\"{}\"{}", pid,
                  LimitText(before.memory_limit), limit, SourceText(after.memory_source), why, note);
    }
    events_.Add(ClientEvent(EventKind::kMemory, client, MonotonicNs(), "memory limit " + limit + ": " + why));
  }
  return true;
}

void Journal::GroupChanged(const Client& client, const std::string& before) {
  if (std::string note; TakeDetail(LinesOf::kOperation, client, &note)) {
    SPDLOG_INFO("group changed pid={} from=\"{}\" to=\"{}\"", client.identity.pid, before, client.group->name);
  }
}

void Journal::Hold(const Client& client, bool hold, const Actor& by) {
  events_.Add(ClientEvent(hold ? EventKind::kHold : EventKind::kRelease, client, MonotonicNs(), Text(by)));
}

void Journal::MemoryRefused(const Attachment& attachment, std::uint64_t count) {
  const Client& client = *attachment.client;
  const std::string what = (count == 1 ? "an allocation of device memory was"
                                       : std::to_string(count) + " allocations of device memory were") +
                           " refused: ";
  const std::string why = MemoryText(attachment);
  Event event = DeviceEvent(EventKind::kMemory, attachment, MonotonicNs());
  event.text = what + why;
  events_.Add(std::move(event));
  if (std::string note; TakeLine(*client.principal, &note)) {
    SPDLOG_WARN("memory refused pid={} uid={} device={} count={} bytes={} limit={} reason=\"{}\" remedy=\"{}\"{}",
                client.identity.pid, client.identity.uid, attachment.device->pci_address, count,
                attachment.memory.bytes, LimitHere(attachment).bytes, why, MemoryRemedy(attachment), note);
  }
}

// ---- claims

void Journal::AddClaimEvent(const ClaimPtr& claim, const std::string& what) {
  Event event = EventNow(EventKind::kClaim, ClaimText(*claim) + " " + what);
  event.claim = claim;
  events_.Add(std::move(event));
}

void Journal::ClaimPut(const ClaimPtr& put, bool is_new, std::size_t clients, const Actor& by) {
  const Claim& claim = *put;
  const auto number = [](const auto& value) { return value ? std::to_string(*value) : std::string("-"); };
  const std::string verb = is_new ? "put" : "changed";
  SPDLOG_INFO(
      "claim {} name=\"{}\" of=\"{}\" cgroup=\"{}\" priority={} ceiling={} weight={} latency={} memory={} group=\"{}\" "
      "ttl_ms={} socket={} clients={} {}",
      verb, claim.name, LabelText(claim), claim.cgroup, number(claim.priority), number(claim.ceiling),
      number(claim.weight), claim.latency ? LatencyText(*claim.latency) : "-",
      LimitText(claim.memory_limit.value_or(0)), claim.group, claim.ttl_ns / policy::kNsPerMs,
      claim.has_socket ? "yes" : "no", clients, Fields(by));
  AddClaimEvent(put, "was " + verb + " " + Text(by));
}

void Journal::NoClaimSocket(const Claim& claim, const Error& error) {
  SPDLOG_ERROR("a claim has no socket: its container is not scheduled name=\"{}\" error=\"{}\"", claim.name,
               error.Line());
}

void Journal::ClaimEnded(const ClaimAccount& account, std::size_t clients) {
  const Claim& claim = *account.claim;
  const Usage& usage = account.usage;
  std::string labels;
  for (const auto& [name, value] : claim.labels)
    fmt::format_to(std::back_inserter(labels), "{}{}={}", labels.empty() ? "" : ",", name, value);
  SPDLOG_INFO(
      "claim ended name=\"{}\" of=\"{}\" cgroup=\"{}\" clients={} gpu_time_ms={} held_ms={} launches={} "
      "untracked_ms={} memory_peak_bytes={} memory_refused={} lasted_ms={} labels=\"{}\" reason=\"{}\"",
      claim.name, LabelText(claim), claim.cgroup, clients, usage.gpu_ns / policy::kNsPerMs,
      usage.held_ns / policy::kNsPerMs, usage.launches, usage.untracked_ns / policy::kNsPerMs,
      account.memory_peak_bytes, usage.memory_refused,
      account.ended_unix_ms - std::min(account.began_unix_ms, account.ended_unix_ms), labels, account.end_reason);
  AddClaimEvent(account.claim, "has ended: " + account.end_reason);
}

// ---- what somebody did

void Journal::Operation(const std::string& what, const std::vector<Client*>& clients, const Actor& by,
                        const Principal& owner) {
  std::string note;
  if (!by.is_admin && !TakeLine(owner, &note)) return;
  std::string pids;
  for (std::size_t i = 0; i < clients.size() && i < kNamedClients; ++i)
    pids += (i == 0 ? "" : ",") + std::to_string(clients[i]->identity.pid);
  if (clients.size() > kNamedClients) pids += ",...";
  SPDLOG_INFO("{} clients={} pid={} {}{}", what, clients.size(), pids, Fields(by), note);
}

void Journal::PolicySet(const policy::Settings& settings, const Actor& by) {
  std::string all;
  for (const policy::SettingRow& row : policy::kSettings)
    all += " " + std::string(row.key) + "=" + policy::Text(row, policy::Get(row, settings));
  SPDLOG_INFO("policy set name={}{} {}", policy::Text(settings.name), all, Fields(by));
  events_.Add(EventNow(EventKind::kPolicy, "policy " + std::string(policy::Text(settings.name)) + " " + Text(by)));
}

void Journal::PolicyRestored(const policy::Settings& settings) {
  SPDLOG_INFO(
      "the policy is still the one set before the restart name={}; `xschedctl reload` takes the configuration's",
      policy::Text(settings.name));
}

void Journal::GuardIsOff() {
  SPDLOG_WARN(
      "the starvation guard is off: a less important client may starve, and a more important one that waits for it "
      "(on a pipe, at a barrier) then waits for ever; turn it on by `xschedctl policy set --guard 10ms` or "
      "guard_ms_per_s");
}

void Journal::ObservesOnly() {
  SPDLOG_WARN(
      "observing only: everything is decided, and no client is held; set `enforce = true` in [daemon] to hold clients");
}

void Journal::ReloadFailed(const Error& error) {
  SPDLOG_ERROR("reload failed, and the old configuration stays in force error=\"{}\"", error.Line());
}

void Journal::Reloaded(const std::string& file, std::size_t clients_changed, std::size_t clients_moved,
                       const Actor& by) {
  SPDLOG_INFO("configuration reloaded file=\"{}\" clients_changed={} clients_moved={} {}", file, clients_changed,
              clients_moved, Fields(by));
  events_.Add(EventNow(EventKind::kReloaded, Text(by)));
}

void Journal::Disabled(const Actor& by) {
  SPDLOG_INFO("disabled: all gates are open, and new clients are refused {}", Fields(by));
  events_.Add(EventNow(EventKind::kPolicy, "scheduling disabled " + Text(by)));
}

void Journal::Enabled(const Actor& by) {
  SPDLOG_INFO("enabled: the policy is in force again {}", Fields(by));
  events_.Add(EventNow(EventKind::kPolicy, "scheduling enabled " + Text(by)));
}

void Journal::Refused(const Principal& owner, const std::string& why) {
  // A flood of refusals must not push everything else out of the log and the event memory.
  const auto left_out = refusal_lines_.Take(owner, MonotonicNs());
  if (!left_out) return;
  Event event = EventNow(EventKind::kRefused, why);
  if (*left_out != 0)
    event.text += " (" + std::to_string(*left_out) + " further refusals of this user were not logged)";
  SPDLOG_WARN("refused reason=\"{}\"", event.text);
  events_.Add(std::move(event));
}

}  // namespace xschedd
