#include "tools/xschedctl/top/screen_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/bytes_text.h"
#include "tools/xschedctl/table.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

constexpr std::size_t kBarWidth = 10;
constexpr std::size_t kCommandInQuestion = 30;

constexpr std::string_view kHelp[] = {
    "Up Down PgUp PgDn Home End  choose a client (also k and j)",
    "< >      sort by the column to the left or right; r: reverse",
    "/        show only rows that contain a text; Esc: show all",
    "p        set the priority of the chosen client; + and - change it by 5; asks first",
    "w        set its weight; asks first",
    "h        hold it, or release it; asks first",
    "Space    pause, and resume",
    "?        this page",
    "q        quit",
    "",
    "GPU      part of the last second in which it used the GPU",
    "SHARE    its part of the GPU time that all clients of the device used",
    "HELD     part of the last seconds in which it had work and its gate was shut",
    "P99-HOLD 99th percentile of its holds in the last minute",
    "LAUNCH/S launches per second",
    "IN-FL    launches believed unfinished",
    "MEMORY   device memory, as the driver reports it; ~ as its shim counts it",
    "MEM-LIM  the most that it may have there now",
    "CLAIM    the job or pod of its claim, else the claim's name; shown if there are any",
    "-        not known: untracked (no client of another priority), or too new",
};

std::string Percent(const std::optional<double>& part) {
  return part ? fmt::format("{:.1f} %", *part * 100) : "-";
}

std::string PerSecond(const std::optional<double>& rate) {
  if (!rate) return "-";
  return *rate < 9'999.5 ? fmt::format("{:.0f}", *rate) : fmt::format("{:.1f}k", *rate / 1000);
}

// Headers are as wide as the usual values below them, so that columns stay in place from one screen to the next.
Table MakeTable(const std::vector<TopRow>& rows, TopSort sort, bool reverse) {
  const auto header = [&](const char* name, std::size_t width, bool right) {
    std::string text(name);
    if (text == Name(sort)) text += reverse ? "^" : "*";
    const std::string pad(width - std::min(width, text.size()), ' ');
    return right ? pad + text : text + pad;
  };
  const auto number = [&](const char* name, std::size_t width, int rank) {
    return Column{.header = header(name, width, true), .right = true, .rank = rank};
  };
  const auto word = [&](const char* name, std::size_t width, int rank) {
    return Column{.header = header(name, width, false), .rank = rank};
  };
  const bool any_memory =
      std::any_of(rows.begin(), rows.end(), [](const TopRow& row) { return row.memory.has_value(); });
  std::vector<Column> columns({number("PID", 7, 0), number("UID", 5, 7), number("PRIO", 5, 0), number("WEIGHT", 6, 8),
                               word("STATE", 9, 0), number("GPU", 7, 0), number("SHARE", 7, 3), number("HELD", 7, 0),
                               number("P99-HOLD", 9, 1), number("LAUNCH/S", 9, 2), number("IN-FL", 6, 4),
                               word("DEVICE", 12, 5), word("WAITS-FOR", 11, 3), word("GROUP", 8, 9),
                               Column{.header = header("COMMAND", 8, false), .flexible = true}});
  const bool any_limit = std::any_of(rows.begin(), rows.end(), [](const TopRow& row) { return row.memory_limit != 0; });
  const bool any_claim = std::any_of(rows.begin(), rows.end(), [](const TopRow& row) { return !row.claim.empty(); });
  constexpr std::ptrdiff_t kMemoryColumn = 11;
  constexpr std::ptrdiff_t kClaimColumn = 13;  // without that of memory
  if (any_claim) columns.insert(columns.begin() + kClaimColumn, word("CLAIM", 8, 3));
  if (any_limit) columns.insert(columns.begin() + kMemoryColumn, number("MEM-LIM", 8, 5));
  if (any_memory) columns.insert(columns.begin() + kMemoryColumn, number("MEMORY", 8, 5));
  Table table(columns);
  for (const TopRow& row : rows) {
    std::vector<std::string> cells(
        {std::to_string(row.pid), std::to_string(row.uid), std::to_string(row.priority), std::to_string(row.weight),
         row.hold ? row.state + ", hold" : row.state, Percent(row.gpu), Percent(row.share), Percent(row.held),
         row.p99_hold_ns ? Duration(*row.p99_hold_ns) : "-", PerSecond(row.launches_s), std::to_string(row.in_flight),
         row.device.empty() ? "-" : row.device, row.waits_for.empty() ? "-" : row.waits_for, row.group, row.command});
    if (any_claim) cells.insert(cells.begin() + kClaimColumn, row.claim.empty() ? "-" : row.claim);
    if (any_limit) {
      cells.insert(cells.begin() + kMemoryColumn, row.memory_limit == 0 ? "-" : BytesText(row.memory_limit));
    }
    if (any_memory) cells.insert(cells.begin() + kMemoryColumn, row.memory ? Text(*row.memory) : "-");
    table.Add(std::move(cells));
  }
  return table;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

std::vector<std::string> TableLines(const std::vector<TopRow>& rows, TopSort sort, bool reverse, std::size_t width) {
  return Lines(MakeTable(rows, sort, reverse).Render({.width = width}));
}

std::string DeviceText(const TopDevice& device) {
  const double used = std::clamp(device.gpu.value_or(0), 0.0, 1.0);
  const auto full = static_cast<std::size_t>(std::lround(used * static_cast<double>(kBarWidth)));
  const std::string bar = device.gpu ? "[" + std::string(full, '#') + std::string(kBarWidth - full, '.') + "] " : "";
  return fmt::format("{}  GPU {:>7} {} {}, {} busy, {} held  {}", device.address, Percent(device.gpu), bar,
                     Count(device.clients, "client"), device.busy, device.held, device.name);
}

std::string NameInQuestion(const TopRow& row) {
  return fmt::format("pid {} ({})", row.pid, OneLine(row.command.substr(0, kCommandInQuestion)));
}

std::span<const std::string_view> TopHelp() {
  return kHelp;
}

}  // namespace xschedd::ctl
