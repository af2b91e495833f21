#include "tools/xschedctl/render_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "common/latency.h"
#include "daemon/config/settings_message.h"
#include "tools/xschedctl/names.h"
#include "tools/xschedctl/policy_settings.h"
#include "tools/xschedctl/table.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

// JSON keeps "owner", its word in 0.1.0.
std::string_view SourceText(v1::PrioritySource source) {
  return source == v1::PRIORITY_SOURCE_OWNER ? "user" : Name(source);
}

std::string Signed(int priority) {
  return fmt::format("{}", priority);
}

// GPU time used in a second, ns; over the time that the daemon's sample covers.
std::uint64_t Rate(const v1::ClientDevice& device) {
  constexpr double kSecond = 1e9;
  constexpr double kMost = 1e18;  // more is no daemon's answer, and fits into no number
  if (device.recent_ns() == 0) return 0;
  return static_cast<std::uint64_t>(
      std::min(static_cast<double>(device.recent_gpu_ns()) / static_cast<double>(device.recent_ns()) * kSecond, kMost));
}

Colour ColourOf(v1::ClientState state) {
  if (state == v1::CLIENT_STATE_RUNNING) return Colour::kGreen;
  return state == v1::CLIENT_STATE_HELD || state == v1::CLIENT_STATE_PASSING ? Colour::kYellow : Colour::kNone;
}

// Beside the share: columns that are only there when somebody has missed a deadline, had calls passed through, or was
// measured.
constexpr std::ptrdiff_t kOptionalColumn = 13;

// What a user is told of the clients of others that fit.
std::string LeftOut(std::uint32_t count, std::string_view what) {
  if (count == 0) return {};
  return fmt::format("({} client{} of other users {})\n", count, count == 1 ? "" : "s", what);
}

// More spans than this tell a person nothing; --json has them all.
constexpr int kSpansShown = 8;

}  // namespace

std::string RenderClients(const v1::ListClientsResponse& answer, const TextStyle& style,
                          const UnscheduledProcesses* unscheduled) {
  const bool any_late = std::any_of(answer.clients().begin(), answer.clients().end(),
                                    [](const v1::Client& client) { return client.late() != 0; });
  const auto others = [](const v1::Client& client) {
    return client.latency() == LatencyText(Latency::kStrict) ? "strict"
           : client.has_benefit()                            ? Harmless(client.benefit().mode())
                                                             : "-";
  };
  const bool any_others = std::any_of(answer.clients().begin(), answer.clients().end(),
                                      [&](const v1::Client& client) { return others(client) != "-"; });
  bool any_passed = false;
  for (const v1::Client& client : answer.clients()) {
    for (const v1::ClientDevice& device : client.devices())
      any_passed |= device.passthrough() != 0;
  }
  std::vector<Column> columns({{.header = "PID", .right = true},
                               {.header = "UID", .right = true, .rank = 4},
                               {.header = "PRIO", .right = true},
                               {.header = "HINT", .right = true, .rank = 7},
                               {.header = "WEIGHT", .right = true, .rank = 5},
                               {.header = "SOURCE", .rank = 3},
                               {.header = "DEVICE", .rank = 2},
                               {.header = "STATE"},
                               {.header = "WAITS-FOR", .rank = 6},
                               {.header = "HELD", .right = true, .rank = 1},
                               {.header = "GPU-TIME", .right = true, .rank = 1},
                               {.header = "GPU", .right = true, .rank = 4},
                               {.header = "SHARE", .right = true, .rank = 4},
                               {.header = "IN-FLIGHT", .right = true, .rank = 9},
                               {.header = "GROUP", .rank = 10},
                               {.header = "COMMAND", .flexible = true}});
  if (any_others) columns.insert(columns.begin() + kOptionalColumn, {.header = "OTHERS", .rank = 6});
  if (any_passed) columns.insert(columns.begin() + kOptionalColumn, {.header = "PASSED", .right = true, .rank = 8});
  if (any_late) columns.insert(columns.begin() + kOptionalColumn, {.header = "LATE", .right = true, .rank = 8});
  Table table(columns);
  // What all who are listed use of each device. Of others, who were not asked for, nothing is known here.
  std::map<std::string, std::uint64_t> rates;
  for (const v1::Client& client : answer.clients()) {
    for (const v1::ClientDevice& device : client.devices())
      rates[device.device()] += Rate(device);
  }
  for (const v1::Client& client : answer.clients()) {
    const std::string hint = client.has_priority_hint() ? Signed(client.priority_hint()) : "-";
    const std::string command = client.command().empty() ? client.exe() : client.command();
    const auto add = [&](const v1::ClientDevice* device) {
      std::string state = device == nullptr ? "no device" : std::string(Name(device->state()));
      if (client.hold()) state += ", hold";
      std::vector<std::string> cells(
          {fmt::format("{}", client.pid()), fmt::format("{}", client.uid()), Signed(client.priority_effective()), hint,
           fmt::format("{}", client.weight()), std::string(SourceText(client.priority_source())),
           device == nullptr ? "-" : device->device(), state,
           device == nullptr || device->held_for().empty() ? "-" : device->held_for(),
           device == nullptr ? "-" : Duration(device->held_ns()),
           device == nullptr ? "-" : Duration(device->gpu_time_ns()),
           device == nullptr ? "-" : Share(device->recent_gpu_ns(), device->recent_ns()),
           device == nullptr || device->recent_ns() == 0 ? "-" : Share(Rate(*device), rates[device->device()]),
           device == nullptr ? "-" : fmt::format("{}", device->in_flight()),
           client.group().empty() ? "-" : client.group(), command});
      const auto insert = [&cells](std::uint64_t count) {
        cells.insert(cells.begin() + kOptionalColumn, count == 0 ? "-" : std::to_string(count));
      };
      if (any_others) cells.insert(cells.begin() + kOptionalColumn, others(client));
      if (any_passed) insert(device == nullptr ? 0 : device->passthrough());
      if (any_late) insert(client.late());
      table.Add(std::move(cells));
      constexpr std::size_t kStateColumn = 7;
      if (device != nullptr) table.Paint(kStateColumn, client.hold() ? Colour::kRed : ColourOf(device->state()));
    };
    for (const v1::ClientDevice& device : client.devices())
      add(&device);
    if (client.devices().empty()) add(nullptr);
  }
  std::string_view not_seen;
  if (unscheduled != nullptr) {
    for (const UnscheduledProcess& process : unscheduled->processes) {
      std::vector<std::string> cells(columns.size(), "-");
      cells[0] = fmt::format("{}", process.pid);
      cells[1] = fmt::format("{}", process.uid);
      cells[7] = "unscheduled";
      cells.back() = process.command + (process.reason.empty() ? "" : " (" + process.reason + ")");
      table.Add(std::move(cells));
    }
    if (!unscheduled->is_complete) not_seen = "processes of other users could not be looked into: run it as root\n";
  }
  const std::string_view notice =
      answer.observes_only()
          ? "observing only ([daemon] enforce = false): nobody is held; HELD is what would have been\n"
          : "";
  return table.Render(style) + LeftOut(answer.left_out(), "not shown") + std::string(not_seen) + std::string(notice);
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
  if (any_latency) columns.insert(columns.begin() + kLatencyColumn, {{.header = "LATENCY"}, {.header = now}});
  Table table(columns);
  for (const auto& change : answer.changes()) {
    std::vector<std::string> cells({fmt::format("{}", change.pid()), Signed(change.priority_before()),
                                    Signed(change.priority_after()), fmt::format("{}", change.weight_before()),
                                    fmt::format("{}", change.weight_after()), change.hold_after() ? "yes" : "no",
                                    change.note().empty() ? "-" : change.note()});
    if (any_latency) {
      cells.insert(cells.begin() + kLatencyColumn,
                   {Harmless(change.latency_before()), Harmless(change.latency_after())});
    }
    table.Add(std::move(cells));
  }
  return table.Render(style) + LeftOut(answer.left_out(), "left as they are");
}

std::string RenderPolicy(const v1::Policy& policy) {
  std::string text = fmt::format("{:<15} {} (available: {})\n", "policy", Harmless(policy.name()),
                                 Harmless(fmt::format("{}", fmt::join(policy.available(), ", "))));
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
  if (!event.device().empty()) line += "  " + event.device();
  if (event.kind() == v1::EVENT_KIND_WEIGHT) line += fmt::format("  weight {}", event.weight());
  if (event.kind() == v1::EVENT_KIND_PRIORITY) line += fmt::format("  priority {}", event.priority());
  if (event.kind() == v1::EVENT_KIND_LOST) {
    line += fmt::format("  {} events were left out here: this watcher was too slow", event.count());
  } else if (!event.reason().empty()) {
    line += "  " + event.reason();
  }
  line = Harmless(line);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string RenderStats(const v1::Stats& stats) {
  std::string quotas;
  for (const auto& refusals : stats.quota_refusals())
    quotas += fmt::format("{}{} {}", quotas.empty() ? "" : ", ", Harmless(refusals.quota()), refusals.count());
  return fmt::format(
      "uptime       {}\n"
      "clients      {} now, {} since the start, {} refused\n"
      "transitions  {}\n"
      "decisions    {}, {} gates written\n"
      "decision     p50 {}, p99 {} (transition seen to gates written)\n"
      "over quota   {}\n",
      Duration(stats.uptime_ms() * 1'000'000), stats.clients(), stats.connections_total(), stats.refused_total(),
      stats.transitions_total(), stats.decisions_total(), stats.gate_writes_total(), Duration(stats.decision_p50_ns()),
      Duration(stats.decision_p99_ns()), quotas.empty() ? "nobody" : quotas);
}

namespace {

// "6.54 s  65.4 %"
std::string Part(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{} {:>7}", Duration(part), Share(part, whole));
}

std::string RenderTimes(const v1::ExplainResponse& answer, const TextStyle& style) {
  Table table({{.header = "DEVICE"},
               {.header = "RUNNING", .right = true},
               {.header = "HELD", .right = true},
               {.header = "IDLE", .right = true, .rank = 1},
               {.header = "UNTRACKED", .right = true, .rank = 2},
               {.header = "SILENT", .right = true, .rank = 6},
               {.header = "GPU-TIME", .right = true, .rank = 3},
               {.header = "OF-DEVICE", .right = true, .rank = 4},
               {.header = "OF-EQUALS", .right = true, .rank = 5},
               {.header = "BY-WEIGHT", .right = true, .rank = 5},
               {.header = "LATE", .right = true, .rank = 6}});
  for (const auto& device : answer.devices()) {
    const std::uint64_t whole = device.observed_ns();
    table.Add({device.device(), Part(device.running_ns(), whole), Part(device.held_ns(), whole),
               Part(device.idle_ns(), whole), Part(device.untracked_ns(), whole), Part(device.silent_ns(), whole),
               Part(device.gpu_ns(), whole), Share(device.gpu_ns(), device.gpu_all_ns()),
               Share(device.gpu_ns(), device.gpu_level_ns()), Share(answer.weight(), device.weight_all()),
               device.late() == 0 ? "-" : fmt::format("{}", device.late())});
  }
  std::string slices;
  for (const auto& device : answer.devices()) {
    if (!device.slice().empty()) slices += fmt::format("{}: {}\n", Harmless(device.device()), Harmless(device.slice()));
  }
  return table.Render(style) + slices;
}

std::string RenderCauses(const v1::ExplainResponse& answer, const TextStyle& style) {
  Table table({{.header = "HELD", .right = true},
               {.header = "PART", .right = true},
               {.header = "TIMES", .right = true},
               {.header = "LONGEST", .right = true, .rank = 1},
               {.header = "DEVICE", .rank = 2},
               {.header = "WHY", .flexible = true}});
  for (const auto& cause : answer.causes()) {
    table.Add({Duration(cause.total_ns()), Share(cause.total_ns(), answer.held_ns()), fmt::format("{}", cause.count()),
               Duration(cause.longest_ns()), cause.device(), cause.reason()});
  }
  return table.Render(style);
}

std::string RenderSpans(const v1::ExplainResponse& answer, const TextStyle& style) {
  Table table({{.header = "AGO", .right = true},
               {.header = "HELD", .right = true},
               {.header = "DEVICE", .rank = 1},
               {.header = "WHY", .flexible = true}});
  const std::uint64_t now = answer.time_ns();
  const int first = std::max(0, answer.held_size() - kSpansShown);
  for (int i = first; i < answer.held_size(); ++i) {
    const auto& span = answer.held(i);
    table.Add({Duration(now - std::min(now, span.start_ns())),
               Duration(span.end_ns() - std::min(span.end_ns(), span.start_ns())), span.device(), span.reason()});
  }
  std::string text = table.Render(style);
  if (first > 0) text += fmt::format("({} earlier ones: see --json)\n", first);
  return text;
}

std::string RenderPassed(const v1::ExplainResponse& answer, const TextStyle& style) {
  Table table({{.header = "CALLS", .right = true}, {.header = "BY", .flexible = true}});
  for (const auto& passed : answer.passed())
    table.Add({fmt::format("{}", passed.count()), passed.rule()});
  return table.Render(style);
}

}  // namespace

std::string RenderExplain(std::uint64_t pid, const v1::ExplainResponse& answer, const TextStyle& style) {
  std::string text;
  if (!answer.command().empty()) text += fmt::format("pid {}: {}\n", pid, Harmless(answer.command()));
  text += Harmless(answer.summary()) + "\n";
  if (!answer.benefit().empty()) text += Harmless(answer.benefit()) + "\n";
  if (answer.devices_size() > 0) text += "\n" + RenderTimes(answer, style);
  if (answer.causes_size() > 0) text += "\n" + RenderCauses(answer, style);
  if (answer.held_size() > 0) text += "\nthe last holds:\n" + RenderSpans(answer, style);
  if (answer.passed_size() > 0) {
    text += "\npassed through ungated by configuration, since it connected:\n" + RenderPassed(answer, style);
  }
  if (answer.remedies_size() > 0) text += "\nwhat to do:\n";
  for (const auto& remedy : answer.remedies()) {
    text += "  " + Harmless(remedy.text()) + "\n";
    if (!remedy.command().empty()) text += "      " + Harmless(remedy.command()) + "\n";
  }
  return text;
}

}  // namespace xschedd::ctl
