#include "tools/xschedctl/doctor/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/xschedctl/table.h"

namespace xschedd::ctl {

bool Report::HasError() const {
  return std::any_of(entries.begin(), entries.end(),
                     [](const Entry& entry) { return entry.finding.level == Level::kError; });
}

Report Examine(const Facts& facts) {
  Report report;
  for (const Check& check : Checks()) {
    for (Finding& finding : check.run(facts))
      report.entries.push_back({check.name, std::move(finding)});
  }
  return report;
}

namespace {

Colour ColourOf(Level level) {
  if (level == Level::kOk) return Colour::kGreen;
  return level == Level::kWarning ? Colour::kYellow : Colour::kRed;
}

// No line is wider than `width` (0: no limit) if that is possible; continuation lines are indented.
std::string Wrapped(const std::string& text, std::size_t width, std::size_t indent) {
  constexpr std::size_t kMinWidth = 20;  // narrower is unreadable
  if (width < indent + kMinWidth) return text;
  std::string out;
  for (const std::string& line : WrapWords(text, width - indent, LongWords::kKeep))
    out += (out.empty() ? "" : "\n" + std::string(indent, ' ')) + line;
  return out;
}

constexpr std::size_t kTextColumn = 26;  // where the text of a line begins

}  // namespace

std::string Render(const Report& report, const TextStyle& style) {
  std::string text;
  for (const Report::Entry& entry : report.entries) {
    const std::string fix = entry.finding.fix.empty() ? "" : "; " + entry.finding.fix;
    text +=
        Painted(fmt::format("{:<8}", Name(entry.finding.level)), ColourOf(entry.finding.level), style.colour) +
        fmt::format(" {:<16} {}\n", entry.check, Wrapped(OneLine(entry.finding.what + fix), style.width, kTextColumn));
  }
  return text;
}

Json ToJson(const Report& report) {
  Json json = {{"ok", !report.HasError()}, {"findings", Json::array()}};
  for (const Report::Entry& entry : report.entries) {
    json["findings"].push_back({{"level", Name(entry.finding.level)},
                                {"check", entry.check},
                                {"what", entry.finding.what},
                                {"fix", entry.finding.fix}});
  }
  return json;
}

}  // namespace xschedd::ctl
