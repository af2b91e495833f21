// `xschedctl explain`: how a client's time was spent, why it was held, and what to do about it.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tools/xschedctl/labels.h"
#include "tools/xschedctl/render_text.h"
#include "tools/xschedctl/table.h"
#include "tools/xschedctl/units.h"

namespace xschedd::ctl {
namespace {

// More would not help a person; --json has all of them.
constexpr int kSpansShown = 8;

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
  std::string more;
  for (const auto& device : answer.devices()) {
    for (const std::string& text : {device.slice(), device.memory()})
      if (!text.empty()) more += fmt::format("{}: {}\n", OneLine(device.device()), OneLine(text));
  }
  return table.Render(style) + more;
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
  if (!answer.command().empty()) text += fmt::format("pid {}: {}\n", pid, OneLine(answer.command()));
  text += OneLine(answer.summary()) + "\n";
  if (answer.claim().labels_size() > 0)
    text += "labels of its claim: " + OneLine(LabelsText(answer.claim().labels())) + "\n";
  for (const std::string& line : {answer.benefit(), answer.queue_priority()})
    if (!line.empty()) text += OneLine(line) + "\n";
  if (answer.devices_size() > 0) text += "\n" + RenderTimes(answer, style);
  if (answer.causes_size() > 0) text += "\n" + RenderCauses(answer, style);
  if (answer.held_size() > 0) text += "\nthe last holds:\n" + RenderSpans(answer, style);
  if (answer.passed_size() > 0) {
    text += "\npassed through ungated by configuration, since it connected:\n" + RenderPassed(answer, style);
  }
  if (answer.remedies_size() > 0) text += "\nwhat to do:\n";
  for (const auto& remedy : answer.remedies()) {
    text += "  " + OneLine(remedy.text()) + "\n";
    if (!remedy.command().empty()) text += "      " + OneLine(remedy.command()) + "\n";
  }
  return text;
}

}  // namespace xschedd::ctl
