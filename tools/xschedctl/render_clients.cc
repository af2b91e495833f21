// `xschedctl ps`: the table of clients.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/bytes_text.h"
#include "common/latency.h"
#include "tools/xschedctl/memory_shown.h"
#include "tools/xschedctl/names.h"
#include "tools/xschedctl/render_text.h"
#include "tools/xschedctl/table.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

// JSON keeps "owner", its word in 0.1.0.
std::string_view SourceText(v1::PrioritySource source) {
  return source == v1::PRIORITY_SOURCE_OWNER ? "user" : Name(source);
}

// GPU time used in a second, ns, averaged over the time that the daemon's sample covers.
std::uint64_t Rate(const v1::ClientDevice& device) {
  constexpr double kSecond = 1e9;
  constexpr double kLimit = 1e18;  // above any real value; the number must fit
  if (device.recent_ns() == 0) return 0;
  return static_cast<std::uint64_t>(std::min(
      static_cast<double>(device.recent_gpu_ns()) / static_cast<double>(device.recent_ns()) * kSecond, kLimit));
}

Colour ColourOf(v1::ClientState state) {
  if (state == v1::CLIENT_STATE_RUNNING) return Colour::kGreen;
  return state == v1::CLIENT_STATE_HELD || state == v1::CLIENT_STATE_PASSING ? Colour::kYellow : Colour::kNone;
}

// "job 17.0"; without such a label the claim's name.
std::string ClaimText(const v1::Client& client) {
  if (!client.has_claim()) return "-";
  return client.claim().text().empty() ? client.claim().name() : client.claim().text();
}

// Where optional columns go, behind SHARE: they are shown only if some client has missed a deadline, had calls passed
// through, was measured, or has a claim, a limit of memory, or memory that is known.
constexpr std::ptrdiff_t kOptionalColumn = 13;

constexpr std::string_view kCountedNote = "~ by its shim's own account: no driver reports its memory here\n";

}  // namespace

std::string RenderClients(const v1::ListClientsResponse& answer, const TextStyle& style,
                          const UnscheduledProcesses* unscheduled, const DeviceMemory* memory) {
  const bool any_late = std::any_of(answer.clients().begin(), answer.clients().end(),
                                    [](const v1::Client& client) { return client.late() != 0; });
  const auto others = [](const v1::Client& client) {
    return client.latency() == LatencyText(Latency::kStrict) ? "strict"
           : client.has_benefit()                            ? OneLine(client.benefit().mode())
                                                             : "-";
  };
  const bool any_others = std::any_of(answer.clients().begin(), answer.clients().end(),
                                      [&](const v1::Client& client) { return others(client) != "-"; });
  const auto memory_of = [memory](std::uint64_t pid, const v1::ClientDevice& device) {
    return memory == nullptr ? std::nullopt : ShownMemory(memory->Of(pid, device.device()), CountedMemory(device));
  };
  bool any_passed = false;
  bool any_memory = false;
  bool any_limit = false;
  for (const v1::Client& client : answer.clients()) {
    for (const v1::ClientDevice& device : client.devices()) {
      any_passed |= device.passthrough() != 0;
      any_memory |= memory_of(client.pid(), device).has_value();
      any_limit |= memory != nullptr && device.memory_limit() != 0;
    }
  }
  if (unscheduled != nullptr && memory != nullptr) {
    any_memory |= std::any_of(unscheduled->processes.begin(), unscheduled->processes.end(),
                              [memory](const UnscheduledProcess& one) { return memory->Of(one.pid).has_value(); });
  }
  std::vector<Column> columns({{.header = "PID", .right = true},
                               {.header = "UID", .right = true, .rank = 4},
                               {.header = "PRIO", .right = true},
                               {.header = "HINT", .right = true, .rank = 7},
                               {.header = "WEIGHT", .right = true, .rank = 5},
                               {.header = "SOURCE", .rank = 3},
                               {.header = "DEVICE", .rank = 2},
                               {.header = "STATE"},
                               {.header = "WAITS-FOR", .rank = 2},
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
  const bool any_claim = std::any_of(answer.clients().begin(), answer.clients().end(),
                                     [](const v1::Client& client) { return client.has_claim(); });
  if (any_claim) columns.insert(columns.begin() + kOptionalColumn, {.header = "CLAIM", .rank = 3});
  if (any_limit) columns.insert(columns.begin() + kOptionalColumn, {.header = "MEM-LIMIT", .right = true, .rank = 5});
  if (any_memory) columns.insert(columns.begin() + kOptionalColumn, {.header = "MEMORY", .right = true, .rank = 5});
  Table table(columns);
  // GPU time in a second on each device, of the listed clients only.
  std::map<std::string, std::uint64_t> rates;
  for (const v1::Client& client : answer.clients()) {
    for (const v1::ClientDevice& device : client.devices())
      rates[device.device()] += Rate(device);
  }
  for (const v1::Client& client : answer.clients()) {
    const std::string hint = client.has_priority_hint() ? std::to_string(client.priority_hint()) : "-";
    const std::string command = client.command().empty() ? client.exe() : client.command();
    const auto add = [&](const v1::ClientDevice* device) {
      std::string state = device == nullptr ? "no device" : std::string(Name(device->state()));
      if (client.hold()) state += ", hold";
      std::vector<std::string> cells(
          {fmt::format("{}", client.pid()), fmt::format("{}", client.uid()),
           std::to_string(client.priority_effective()), hint, fmt::format("{}", client.weight()),
           std::string(SourceText(client.priority_source())), device == nullptr ? "-" : device->device(), state,
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
      if (any_claim) cells.insert(cells.begin() + kOptionalColumn, ClaimText(client));
      if (any_limit) {
        const std::uint64_t limit = device == nullptr ? 0 : device->memory_limit();
        cells.insert(cells.begin() + kOptionalColumn, limit == 0 ? "-" : BytesText(limit));
      }
      if (any_memory) {
        const auto shown = device == nullptr ? std::nullopt : memory_of(client.pid(), *device);
        cells.insert(cells.begin() + kOptionalColumn, shown ? Text(*shown) : "-");
      }
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
      if (any_memory) {
        if (const auto bytes = memory->Of(process.pid)) cells[kOptionalColumn] = BytesText(*bytes);
      }
      cells.back() = process.command + (process.reason.empty() ? "" : " (" + process.reason + ")");
      table.Add(std::move(cells));
    }
    if (!unscheduled->is_complete) not_seen = "processes of other users could not be inspected: run it as root\n";
  }
  const std::string_view notice =
      answer.observes_only()
          ? "observing only ([daemon] enforce = false): no client is held; HELD is what would have been\n"
          : "";
  const MemoryNotes notes = memory == nullptr ? MemoryNotes() : NotesOn(answer, *memory);
  const std::string_view source = notes.any_counted && style.header && table.Shows("MEMORY", style) ? kCountedNote : "";
  return table.Render(style) + LeftOutNote(answer.left_out(), "not shown") + std::string(not_seen) +
         std::string(notice) + std::string(source) + notes.differences;
}

}  // namespace xschedd::ctl
