#include "tools/xschedctl/render_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "daemon/config/settings_message.h"
#include "tools/xschedctl/labels.h"
#include "tools/xschedctl/memory_shown.h"
#include "tools/xschedctl/names.h"

namespace xschedd::ctl {
namespace {

Json BytesJson(const std::optional<std::uint64_t>& bytes) {
  return bytes ? Json(*bytes) : Json();
}

// 0: no limit.
Json LimitJson(std::uint64_t bytes) {
  return bytes != 0 ? Json(bytes) : Json();
}

Json MemoryLimitJson(const v1::Client& client) {
  if (!client.has_memory_limit()) return {};
  const v1::MemoryLimit& limit = client.memory_limit();
  return {{"bytes", limit.bytes()},
          {"source", Name(limit.source())},
          {"is_shared", limit.is_shared()},
          {"not_applied", limit.not_applied()}};
}

Json ToJson(const v1::ClientDevice& device, const std::optional<std::uint64_t>& memory) {
  return {{"slot", device.slot()},
          {"device", device.device()},
          {"state", Name(device.state())},
          {"gpu_time_ns", device.gpu_time_ns()},
          {"held_ns", device.held_ns()},
          {"held_for", device.held_for()},
          {"submitted", device.submitted()},
          {"completed", device.completed()},
          {"in_flight", device.in_flight()},
          {"window_limit", device.window_limit()},
          {"window_us", device.window_us()},
          {"passthrough", device.passthrough()},
          {"recent_ns", device.recent_ns()},
          {"recent_gpu_ns", device.recent_gpu_ns()},
          {"slice_wanted_us", device.slice_wanted_us()},
          {"slice_us", device.slice_us()},
          {"slice", device.slice()},
          {"memory_bytes", BytesJson(memory)},
          {"memory_counted_bytes", BytesJson(CountedMemory(device))},
          {"memory_limit_bytes", LimitJson(device.memory_limit())},
          {"memory_refused", device.memory_refused()}};
}

template <typename List>
Json PassedJson(const List& list) {
  Json passed = Json::array();
  for (const auto& entry : list)
    passed.push_back({{"rule", entry.rule()}, {"count", entry.count()}});
  return passed;
}

Json BenefitJson(const v1::Benefit& benefit) {
  return {{"mode", benefit.mode()},
          {"slower_percent", benefit.slower_percent()},
          {"tail_percent", benefit.tail_percent()},
          {"comparisons", benefit.comparisons()},
          {"held_percent", benefit.held_percent()},
          {"cost_percent", benefit.cost_percent()},
          {"is_settled", benefit.is_settled()},
          {"is_searching", benefit.is_searching()}};
}

template <typename Message>
Json ClaimJson(const Message& of) {
  if (!of.has_claim()) return {};
  return {{"name", of.claim().name()}, {"text", of.claim().text()}, {"labels", LabelsJson(of.claim().labels())}};
}

Json ToJson(const v1::Client& client, const DeviceMemory* memory) {
  Json json = {{"id", client.id()},
               {"pid", client.pid()},
               {"uid", client.uid()},
               {"gid", client.gid()},
               {"cgroup", client.cgroup()},
               {"exe", client.exe()},
               {"command", client.command()},
               {"group", client.group()},
               {"priority_hint", client.has_priority_hint() ? Json(client.priority_hint()) : Json()},
               {"priority_admin", client.has_priority_admin() ? Json(client.priority_admin()) : Json()},
               {"priority_owner", client.has_priority_owner() ? Json(client.priority_owner()) : Json()},
               {"priority_effective", client.priority_effective()},
               {"priority_source", Name(client.priority_source())},
               {"claim", ClaimJson(client)},
               {"memory_limit", MemoryLimitJson(client)},
               {"weight", client.weight()},
               {"latency", client.latency()},
               {"queue_priority", client.queue_priority()},
               {"late", client.late()},
               {"passed", PassedJson(client.passed())},
               {"benefit", client.has_benefit() ? BenefitJson(client.benefit()) : Json()},
               {"hold", client.hold()},
               {"hold_by_admin", client.hold_by_admin()},
               {"runtime", client.runtime()},
               {"route", client.route()},
               {"client_version", client.client_version()},
               {"connected_ms", client.connected_ms()},
               {"devices", Json::array()},
               {"queues", Json::array()}};
  for (const v1::ClientDevice& device : client.devices())
    json["devices"].push_back(
        ToJson(device, memory == nullptr ? std::nullopt : memory->Of(client.pid(), device.device())));
  for (const v1::Queue& queue : client.queues()) {
    json["queues"].push_back({{"id", queue.id()},
                              {"slot", queue.slot()},
                              {"native_priority", queue.native_priority()},
                              {"launches", queue.launches()},
                              {"completions", queue.completions()}});
  }
  return json;
}

}  // namespace

Json ToJson(const v1::ListClientsResponse& answer, const DeviceMemory* memory) {
  Json json = {{"policy", answer.policy()},     {"time_ns", answer.time_ns()},
               {"left_out", answer.left_out()}, {"observes_only", answer.observes_only()},
               {"clients", Json::array()},      {"devices", Json::array()}};
  for (const v1::Client& client : answer.clients())
    json["clients"].push_back(ToJson(client, memory));
  for (const v1::Device& device : answer.devices()) {
    json["devices"].push_back({{"pci_address", device.pci_address()},
                               {"name", device.name()},
                               {"vendor", device.vendor()},
                               {"compute_units", device.compute_units()},
                               {"clients", device.clients()},
                               {"busy", device.busy()},
                               {"held", device.held()}});
  }
  return json;
}

Json ToJson(const UnscheduledProcesses& unscheduled, const DeviceMemory* memory) {
  Json json = {{"complete", unscheduled.is_complete}, {"processes", Json::array()}};
  for (const UnscheduledProcess& process : unscheduled.processes) {
    json["processes"].push_back(
        {{"pid", process.pid},
         {"uid", process.uid},
         {"command", process.command},
         {"reason", process.reason},
         {"memory_bytes", BytesJson(memory == nullptr ? std::nullopt : memory->Of(process.pid))}});
  }
  return json;
}

Json ToJson(const v1::ChangeResponse& answer, bool dry_run) {
  Json json = {{"dry_run", dry_run},
               {"applied_ns", answer.applied_ns()},
               {"left_out", answer.left_out()},
               {"changes", Json::array()}};
  for (const auto& change : answer.changes()) {
    json["changes"].push_back({{"pid", change.pid()},
                               {"priority_before", change.priority_before()},
                               {"priority_after", change.priority_after()},
                               {"weight_before", change.weight_before()},
                               {"weight_after", change.weight_after()},
                               {"latency_before", change.latency_before()},
                               {"latency_after", change.latency_after()},
                               {"memory_limit_before", LimitJson(change.memory_limit_before())},
                               {"memory_limit_after", LimitJson(change.memory_limit_after())},
                               {"hold_after", change.hold_after()},
                               {"note", change.note()}});
  }
  return json;
}

Json ToJson(const v1::Policy& policy) {
  Json json = {{"name", policy.name()}};
  for (const policy::SettingRow& row : policy::kSettings) {
    const auto said = FindSetting(row, policy);
    if (!said || !*said) continue;
    const policy::Value value = **said;
    const std::string key(row.key);
    json[key] = row.IsLever() ? Json(policy::Text(row, value)) : Json(std::max(value, policy::Value{0}));
    if (row.MayBeVendors()) json[key + "_by_vendor"] = value == policy::kByVendor;
  }
  json["available"] = Json::array();
  for (const std::string& name : policy.available())
    json["available"].push_back(name);
  return json;
}

Json ToJson(const v1::Event& event) {
  return {{"time_ns", event.time_ns()},
          {"unix_ms", event.unix_ms()},
          {"kind", Name(event.kind())},
          {"client_id", event.client_id()},
          {"pid", event.pid()},
          {"device", event.device()},
          {"priority", event.priority()},
          {"weight", event.weight()},
          {"count", event.count()},
          {"claim", event.claim()},
          {"labels", LabelsJson(event.labels())},
          {"reason", event.reason()},
          {"rule", event.rule()},
          {"for_pid", event.for_pid()},
          {"for_priority", event.for_priority()}};
}

Json ToJson(const v1::Stats& stats) {
  Json quotas = Json::object();
  for (const auto& refusals : stats.quota_refusals())
    quotas[refusals.quota()] = refusals.count();
  return {{"uptime_ms", stats.uptime_ms()},
          {"clients", stats.clients()},
          {"connections_total", stats.connections_total()},
          {"transitions_total", stats.transitions_total()},
          {"decisions_total", stats.decisions_total()},
          {"gate_writes_total", stats.gate_writes_total()},
          {"refused_total", stats.refused_total()},
          {"decision_p50_ns", stats.decision_p50_ns()},
          {"decision_p99_ns", stats.decision_p99_ns()},
          {"quota_refusals", quotas}};
}

Json ToJson(std::uint64_t pid, const v1::ExplainResponse& answer) {
  Json json = {{"pid", pid},
               {"command", answer.command()},
               {"priority", answer.priority()},
               {"weight", answer.weight()},
               {"claim", ClaimJson(answer)},
               {"policy", answer.policy()},
               {"is_gone", answer.is_gone()},
               {"ended_ns", answer.ended_ns()},
               {"held_ns", answer.held_ns()},
               {"observed_ns", answer.observed_ns()},
               {"time_ns", answer.time_ns()},
               {"summary", answer.summary()},
               {"benefit", answer.benefit()},
               {"queue_priority", answer.queue_priority()},
               {"devices", Json::array()},
               {"causes", Json::array()},
               {"remedies", Json::array()},
               {"passed", PassedJson(answer.passed())},
               {"held", Json::array()}};
  for (const auto& device : answer.devices()) {
    json["devices"].push_back({{"device", device.device()},
                               {"observed_ns", device.observed_ns()},
                               {"running_ns", device.running_ns()},
                               {"held_ns", device.held_ns()},
                               {"idle_ns", device.idle_ns()},
                               {"untracked_ns", device.untracked_ns()},
                               {"silent_ns", device.silent_ns()},
                               {"gpu_ns", device.gpu_ns()},
                               {"gpu_all_ns", device.gpu_all_ns()},
                               {"gpu_level_ns", device.gpu_level_ns()},
                               {"weight_all", device.weight_all()},
                               {"slice", device.slice()},
                               {"memory", device.memory()},
                               {"late", device.late()}});
  }
  for (const auto& cause : answer.causes()) {
    json["causes"].push_back({{"device", cause.device()},
                              {"rule", cause.rule()},
                              {"reason", cause.reason()},
                              {"for_pid", cause.for_pid()},
                              {"count", cause.count()},
                              {"total_ns", cause.total_ns()},
                              {"longest_ns", cause.longest_ns()}});
  }
  for (const auto& remedy : answer.remedies())
    json["remedies"].push_back({{"text", remedy.text()}, {"command", remedy.command()}});
  for (const auto& span : answer.held()) {
    json["held"].push_back({{"start_ns", span.start_ns()},
                            {"end_ns", span.end_ns()},
                            {"device", span.device()},
                            {"reason", span.reason()}});
  }
  return json;
}

Json ToJson(const v1::GetVersionResponse& answer) {
  return {{"version", answer.version()},
          {"abi_version", answer.abi_version()},
          {"layout_hash", fmt::format("{:016x}", answer.layout_hash())},
          {"pid", answer.pid()},
          {"uptime_ms", answer.uptime_ms()}};
}

std::string Document(std::string_view kind, const Json& json) {
  Json document = {{"schema", "xschedctl/" + std::string(kind) + "/" + std::to_string(kSchemaVersion)}};
  document.update(json);
  return Line(document);
}

std::string Line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace xschedd::ctl
