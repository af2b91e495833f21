#include "tools/xschedctl/render_config.h"

#include <fmt/format.h>

#include "daemon/config/conversion.h"
#include "daemon/config/key_units.h"
#include "tools/xschedctl/table.h"
#include "tools/xschedctl/units.h"

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

// "25 ms"; `exe="train" priority=-20` for a table of the file.
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

// Relative to the main file's folder if the file is in it. An earlier daemon has only one file and does not name it.
std::string FileLabel(const std::string& file, const std::string& main) {
  if (file.empty()) return "file";
  const std::string folder = main.substr(0, main.rfind('/') + 1);
  const bool is_below = !folder.empty() && file.compare(0, folder.size(), folder) == 0;
  return OneLine(is_below ? file.substr(folder.size()) : file);
}

std::string SourceText(const Setting& setting, const std::string& main) {
  const std::string note = setting.note().empty() ? "" : "; " + OneLine(setting.note());
  if (setting.source() == kFromFile) {
    return fmt::format("{}, line {}{}", FileLabel(setting.file(), main), setting.line(), note);
  }
  if (setting.source() == kFromOption) return setting.key() == "policy.name" ? "--policy" : "--software-gpu";
  if (setting.source() == kFromAdmin) return "policy set";
  return setting.source();
}

std::string Place(const ConfigError& error) {
  return error.line == 0 ? error.file : fmt::format("{}:{}:{}", error.file, error.line, error.column);
}

// "/etc/xschedd/xschedd.toml and 2 files in conf.d"
std::string FilesText(const v1::GetConfigResponse& config) {
  std::string text = config.file().empty() ? "no file" : OneLine(config.file());
  if (const int more = config.drop_ins_size(); more != 0) {
    text += fmt::format(" and {} in conf.d", Count(static_cast<std::uint64_t>(more), "file"));
  }
  return text;
}

}  // namespace

ShownConfig Shown(const Config& config, const std::string& file) {
  ShownConfig shown;
  FillConfiguration(file, config, Describe(config), shown.config);
  return shown;
}

std::string RenderConfig(const ShownConfig& config, bool only_changed, const TextStyle& style) {
  Table table({{.header = "SETTING"},
               {.header = "VALUE"},
               {.header = "DEFAULT", .rank = 1},
               {.header = "CHANGED", .rank = 2},
               {.header = "FROM", .flexible = true}});
  std::size_t changed = 0;
  for (const Setting& setting : config.config.settings()) {
    const bool differs = Differs(setting);
    changed += differs ? 1 : 0;
    if (only_changed && !differs) continue;
    table.Add({setting.key(), ValueText(setting.key(), setting.value()),
               ValueText(setting.key(), setting.default_value()), differs ? "yes" : "no",
               SourceText(setting, config.config.file())});
    if (differs) table.Paint(3, Colour::kYellow);
  }
  return table.Render(style) + fmt::format("({} of {} settings differ from the defaults; {} {})\n", changed,
                                           config.config.settings_size(),
                                           config.is_running ? "in force in the daemon, which reads"
                                                             : "as a daemon started now would have them; read from",
                                           FilesText(config.config));
}

Json ToJson(const ShownConfig& config, bool only_changed) {
  Json json = {{"in_force", config.is_running},
               {"file", config.config.file().empty() ? Json() : Json(config.config.file())},
               {"drop_ins", Json::array()},
               {"settings", Json::array()}};
  for (const std::string& file : config.config.drop_ins())
    json["drop_ins"].push_back(file);
  for (const Setting& setting : config.config.settings()) {
    if (only_changed && !Differs(setting)) continue;
    const std::string_view unit = UnitOf(setting.key());
    json["settings"].push_back({{"key", setting.key()},
                                {"value", Parsed(setting.value())},
                                {"default", Parsed(setting.default_value())},
                                {"unit", unit.empty() ? Json() : Json(unit)},
                                {"differs", Differs(setting)},
                                {"source", setting.source()},
                                {"file", setting.file().empty() ? Json() : Json(setting.file())},
                                {"line", setting.line() == 0 ? Json() : Json(setting.line())},
                                {"note", setting.note().empty() ? Json() : Json(setting.note())}});
  }
  return json;
}

std::string RenderErrors(const std::vector<ConfigFile>& files, const Examined& examined, const TextStyle& style) {
  std::string text;
  if (examined.errors.empty()) {
    for (const ConfigFile& file : files)
      text += OneLine(file.path) + ": " + Painted("good", Colour::kGreen, style.colour) + "\n";
  }
  for (const ConfigError& error : examined.errors) {
    text += OneLine(Place(error)) + ": " + Painted("error", Colour::kRed, style.colour) + ": " +
            OneLine(error.what + "; " + error.remedy) + "\n";
  }
  if (examined.more_errors != 0) text += fmt::format("({} more)\n", examined.more_errors);
  return text;
}

Json ToJson(const std::vector<ConfigFile>& files, const Examined& examined) {
  Json json = {{"ok", examined.errors.empty()},
               {"file", files.front().path},
               {"drop_ins", Json::array()},
               {"errors", Json::array()},
               {"more_errors", examined.more_errors}};
  for (std::size_t i = 1; i < files.size(); ++i)
    json["drop_ins"].push_back(files[i].path);
  for (const ConfigError& error : examined.errors) {
    json["errors"].push_back({{"file", error.file},
                              {"line", error.line},
                              {"column", error.column},
                              {"what", error.what},
                              {"remedy", error.remedy}});
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
    text += answer.changes_size() == 0 ? "what the files say is in force already: a reload would change nothing\n"
                                       : "(dry run: nothing was changed)\n";
    return text;
  }
  text += "configuration read\n";
  for (const std::string& note : answer.notes())
    text += OneLine(note) + "\n";
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
