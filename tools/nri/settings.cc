#include "tools/nri/settings.h"

#include "daemon/config/files.h"
#include "daemon/config/reader.h"

namespace xschedd::nri {
namespace {

void ReadNamespace(ConfigReader& reader, const toml::table& table, const std::string& place, NamespaceSettings& value) {
  reader.OnlyKeys(table, place, {"ceiling", "weight_ceiling", "priority", "memory"});
  reader.Priority(table, "ceiling", value.ceiling);
  reader.Number(table, "weight_ceiling", policy::kWeightLimits, value.weight_ceiling);
  reader.Memory(table, "memory", value.memory);
  if (int priority = 0; reader.Priority(table, "priority", priority)) value.priority = priority;
  if (value.priority && *value.priority > value.ceiling) {
    reader.Refuse(table,
                  place + ": priority " + std::to_string(*value.priority) + " is above the ceiling, " +
                      std::to_string(value.ceiling),
                  "lower one or raise the other");
  }
}

}  // namespace

Result<Settings> ParseSettings(const std::string& text, const std::string& file) {
  const auto parsed = ParseToml(text, file);
  if (!parsed) return tl::unexpected<Error>(parsed.error().AsError());
  const toml::table& root = *parsed;
  Settings settings;
  ConfigReader reader(file);
  reader.OnlyKeys(root, "the file", {"shim", "default", "namespace"});
  reader.Text(root, "shim", settings.shim);
  if (const toml::table* table = reader.Table(root, "default"))
    ReadNamespace(reader, *table, "[default]", settings.other);
  reader.EachNamedTable(root, "namespace",
                        [&](const std::string& name, const toml::table& table, const std::string& place) {
                          // What it leaves out is as in [default], except for the priority, which could be above
                          // its own ceiling.
                          NamespaceSettings value = settings.other;
                          value.priority.reset();
                          ReadNamespace(reader, table, place, value);
                          settings.namespaces.emplace(name, value);
                        });
  if (reader.Errors().empty()) return settings;
  return tl::unexpected<Error>(reader.Errors().front().AsError());
}

Result<Settings> LoadSettings(const std::string& path) {
  const auto text = ReadConfigText(path, {.open = "make it readable for root",
                                          .size = "name the right file by --config",
                                          .read = "name a TOML file by --config"});
  if (!text) return tl::unexpected<Error>(text.error());
  return ParseSettings(text->value_or(""), path);
}

}  // namespace xschedd::nri
