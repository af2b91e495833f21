#include "tools/xschedctl/render_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/bytes_text.h"
#include "daemon/config/settings_message.h"
#include "tools/xschedctl/names.h"
#include "tools/xschedctl/policy_settings.h"
#include "tools/xschedctl/table.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {

std::string LeftOutNote(std::uint32_t count, std::string_view what) {
  if (count == 0) return {};
  return fmt::format("({} of other users {})\n", Count(count, "client"), what);
}

std::string RenderDevices(const v1::ListClientsResponse& answer, const TextStyle& style) {
  Table table({{.header = "DEVICE"},
               {.header = "CLIENTS", .right = true},
               {.header = "BUSY", .right = true},
               {.header = "HELD", .right = true},
               {.header = "CUS", .right = true, .rank = 1},
               {.header = "VENDOR", .rank = 2},
               {.header = "NAME", .flexible = true}});
  for (const v1::Device& device : answer.devices()) {
    table.Add({device.pci_address(), fmt::format("{}", device.clients()), fmt::format("{}", device.busy()),
               fmt::format("{}", device.held()), fmt::format("{}", device.compute_units()), device.vendor(),
               device.name()});
  }
  return table.Render(style);
}

std::string RenderChange(const v1::ChangeResponse& answer, bool dry_run, const TextStyle& style) {
  const std::string now = dry_run ? "WOULD-BE" : "NOW";
  const bool any_latency = std::any_of(answer.changes().begin(), answer.changes().end(), [](const auto& change) {
    return change.latency_before() != change.latency_after();
  });
  std::vector<Column> columns({{.header = "PID", .right = true},
                               {.header = "PRIO", .right = true},
                               {.header = now, .right = true},
                               {.header = "WEIGHT", .right = true},
                               {.header = now, .right = true},
                               {.header = "HOLD"},
                               {.header = "NOTE", .flexible = true}});
  constexpr std::ptrdiff_t kLatencyColumn = 5;
  const bool any_limit = std::any_of(answer.changes().begin(), answer.changes().end(), [](const auto& change) {
    return change.memory_limit_before() != change.memory_limit_after();
  });
  if (any_limit) {
    columns.insert(columns.begin() + kLatencyColumn,
                   {{.header = "MEM-LIMIT", .right = true}, {.header = now, .right = true}});
  }
  if (any_latency) columns.insert(columns.begin() + kLatencyColumn, {{.header = "LATENCY"}, {.header = now}});
  Table table(columns);
  for (const auto& change : answer.changes()) {
    std::vector<std::string> cells({fmt::format("{}", change.pid()), std::to_string(change.priority_before()),
                                    std::to_string(change.priority_after()), fmt::format("{}", change.weight_before()),
                                    fmt::format("{}", change.weight_after()), change.hold_after() ? "yes" : "no",
                                    change.note().empty() ? "-" : change.note()});
    const auto limit = [](std::uint64_t bytes) { return bytes == 0 ? std::string("-") : BytesText(bytes); };
    if (any_limit) {
      cells.insert(cells.begin() + kLatencyColumn,
                   {limit(change.memory_limit_before()), limit(change.memory_limit_after())});
    }
    if (any_latency) {
      cells.insert(cells.begin() + kLatencyColumn, {OneLine(change.latency_before()), OneLine(change.latency_after())});
    }
    table.Add(std::move(cells));
  }
  return table.Render(style) + LeftOutNote(answer.left_out(), "left as they are");
}

std::string RenderPolicy(const v1::Policy& policy) {
  std::string text = fmt::format("{:<15} {} (available: {})\n", "policy", OneLine(policy.name()),
                                 OneLine(fmt::format("{}", fmt::join(policy.available(), ", "))));
  for (const policy::SettingRow& row : policy::kSettings) {
    const auto value = FindSetting(row, policy);
    if (!value || !*value) continue;
    text += fmt::format("{:<15} {:<7} {}\n", OptionOf(row), SettingText(row, **value), MeaningOf(row, **value));
  }
  return text;
}

std::string RenderEvent(const v1::Event& event) {
  std::string line = fmt::format("{}  {:<15}", ClockTime(event.unix_ms()), Name(event.kind()));
  if (event.pid() != 0) line += fmt::format("  pid {}", event.pid());
  if (event.pid() != 0 && !event.claim().empty()) {
    line += fmt::format(" ({})", event.claim_text().empty() ? event.claim() : event.claim_text());
  }
  if (!event.device().empty()) line += "  " + event.device();
  if (event.kind() == v1::EVENT_KIND_WEIGHT) line += fmt::format("  weight {}", event.weight());
  if (event.kind() == v1::EVENT_KIND_PRIORITY) line += fmt::format("  priority {}", event.priority());
  if (event.kind() == v1::EVENT_KIND_LOST) {
    line += fmt::format("  {} left out here: this watcher was too slow", Count(event.count(), "event"));
  } else if (!event.reason().empty()) {
    line += "  " + event.reason();
  }
  line = OneLine(line);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string RenderStats(const v1::Stats& stats) {
  std::string quotas;
  for (const auto& refusals : stats.quota_refusals())
    quotas += fmt::format("{}{} {}", quotas.empty() ? "" : ", ", OneLine(refusals.quota()), refusals.count());
  return fmt::format(
      "uptime       {}\n"
      "clients      {} now, {} since the start, {} refused\n"
      "transitions  {}\n"
      "decisions    {}, {} written\n"
      "decision     p50 {}, p99 {} (transition seen to gates written)\n"
      "over quota   {}\n",
      Duration(stats.uptime_ms() * 1'000'000), stats.clients(), stats.connections_total(), stats.refused_total(),
      stats.transitions_total(), stats.decisions_total(), Count(stats.gate_writes_total(), "gate"),
      Duration(stats.decision_p50_ns()), Duration(stats.decision_p99_ns()), quotas.empty() ? "none" : quotas);
}

}  // namespace xschedd::ctl
