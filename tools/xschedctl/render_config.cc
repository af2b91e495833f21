#include "tools/xschedctl/render_config.h"

#include <fmt/format.h>

#include "daemon/config/conversion.h"
#include "daemon/config/key_units.h"
#include "tools/xschedctl/table.h"

namespace xschedd::ctl {
namespace {

using Setting = v1::GetConfigResponse::Setting;

Json Parsed(const std::string& value) {
  Json json = Json::parse(value, nullptr, false);
  return json.is_discarded() ? Json() : json;
}

bool Differs(const Setting& setting) {
  return setting.value() != setting.default_value();
}

// "25 ms"; `exe="train" priority=-20` for what is a table in the file.
std::string ValueText(const std::string& key, const std::string& value) {
  const Json json = Parsed(value);
  if (json.is_null()) return "-";
  if (!json.is_object()) {
    const std::string_view unit = json.is_number() ? UnitOf(key) : std::string_view();
    return value + (unit.empty() ? "" : " " + std::string(unit));
  }
  std::string text;
  for (const auto& [name, one] : json.items())
    text += (text.empty() ? "" : " ") + name + "=" + one.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text;
}

std::string SourceText(const Setting& setting) {
  const std::string note = setting.note().empty() ? "" : "; " + Harmless(setting.note());
  if (setting.source() == kFromFile) return fmt::format("file, line {}{}", setting.line(), note);
  if (setting.source() == kFromOption) return setting.key() == "policy.name" ? "--policy" : "--software-gpu";
  if (setting.source() == kFromAdmin) return "policy set";
  return setting.source();
}

std::string Place(const std::string& file, const ConfigError& error) {
  return error.line == 0 ? file : fmt::format("{}:{}:{}", file, error.line, error.column);
}

}  // namespace

ShownConfig Shown(const std::vector<xschedd::Setting>& settings, const std::string& file) {
  v1::GetConfigResponse said;
  FillConfiguration(file, settings, said);
  return {file, false, {said.settings().begin(), said.settings().end()}};
}

std::string RenderConfig(const ShownConfig& config, bool only_changed, const TextStyle& style) {
  Table table({{.header = "SETTING"},
               {.header = "VALUE"},
               {.header = "DEFAULT", .rank = 1},
               {.header = "CHANGED", .rank = 2},
               {.header = "FROM", .flexible = true}});
  std::size_t changed = 0;
  for (const Setting& setting : config.settings) {
    const bool differs = Differs(setting);
    changed += differs ? 1 : 0;
    if (only_changed && !differs) continue;
    table.Add({setting.key(), ValueText(setting.key(), setting.value()),
               ValueText(setting.key(), setting.default_value()), differs ? "yes" : "no", SourceText(setting)});
    if (differs) table.Paint(3, Colour::kYellow);
  }
  const std::string file = config.file.empty() ? "no file" : Harmless(config.file);
  return table.Render(style) +
         fmt::format("({} of {} settings differ from the defaults; {}: {})\n", changed, config.settings.size(),
                     config.is_running ? "in force in the daemon, whose file is" : "not asked of a daemon; read from",
                     file);
}

Json ToJson(const ShownConfig& config, bool only_changed) {
  Json json = {{"in_force", config.is_running},
               {"file", config.file.empty() ? Json() : Json(config.file)},
               {"settings", Json::array()}};
  for (const Setting& setting : config.settings) {
    if (only_changed && !Differs(setting)) continue;
    const std::string_view unit = UnitOf(setting.key());
    json["settings"].push_back({{"key", setting.key()},
                                {"value", Parsed(setting.value())},
                                {"default", Parsed(setting.default_value())},
                                {"unit", unit.empty() ? Json() : Json(unit)},
                                {"differs", Differs(setting)},
                                {"source", setting.source()},
                                {"line", setting.line() == 0 ? Json() : Json(setting.line())},
                                {"note", setting.note().empty() ? Json() : Json(setting.note())}});
  }
  return json;
}

std::string RenderErrors(const std::string& file, const Examined& examined, const TextStyle& style) {
  if (examined.errors.empty()) return Harmless(file) + ": " + Painted("good", Colour::kGreen, style.colour) + "\n";
  std::string text;
  for (const ConfigError& error : examined.errors) {
    text += Harmless(Place(file, error)) + ": " + Painted("error", Colour::kRed, style.colour) + ": " +
            Harmless(error.what + "; " + error.remedy) + "\n";
  }
  if (examined.more_errors != 0) text += fmt::format("({} more)\n", examined.more_errors);
  return text;
}

Json ToJson(const std::string& file, const Examined& examined) {
  Json json = {{"ok", examined.errors.empty()},
               {"file", file},
               {"errors", Json::array()},
               {"more_errors", examined.more_errors}};
  for (const ConfigError& error : examined.errors) {
    json["errors"].push_back(
        {{"line", error.line}, {"column", error.column}, {"what", error.what}, {"remedy", error.remedy}});
  }
  return json;
}

std::string RenderReload(const v1::ReloadResponse& answer, bool dry_run, const TextStyle& style) {
  std::string text;
  if (answer.changes_size() > 0) {
    Table table(
        {{.header = "SETTING"}, {.header = "BEFORE"}, {.header = dry_run ? "WOULD-BE" : "NOW", .flexible = true}});
    for (const auto& change : answer.changes())
      table.Add({change.key(), ValueText(change.key(), change.before()), ValueText(change.key(), change.after())});
    text += table.Render(style);
  }
  if (dry_run) {
    text += answer.changes_size() == 0 ? "the file is what is in force: a reload would change nothing\n"
                                       : "(dry run: nothing was changed)\n";
    return text;
  }
  text += "configuration read\n";
  for (const std::string& note : answer.notes())
    text += Harmless(note) + "\n";
  return text;
}

Json ToJson(const v1::ReloadResponse& answer, bool dry_run) {
  Json json = {{"dry_run", dry_run}, {"notes", Json::array()}, {"changes", Json::array()}};
  for (const std::string& note : answer.notes())
    json["notes"].push_back(note);
  for (const auto& change : answer.changes()) {
    json["changes"].push_back(
        {{"key", change.key()}, {"before", Parsed(change.before())}, {"after", Parsed(change.after())}});
  }
  return json;
}

}  // namespace xschedd::ctl
