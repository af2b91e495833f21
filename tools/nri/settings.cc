#include "tools/nri/settings.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "daemon/config/reader.h"

namespace xschedd::nri {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;

void ReadNamespace(ConfigReader& reader, const toml::table& table, const std::string& place, NamespaceSettings& value) {
  reader.OnlyKeys(table, place, {"ceiling", "weight_ceiling", "priority"});
  reader.Priority(table, "ceiling", value.ceiling);
  reader.Number(table, "weight_ceiling", policy::kWeightLimits, value.weight_ceiling);
  if (int priority = 0; reader.Priority(table, "priority", priority)) value.priority = priority;
  if (value.priority && *value.priority > value.ceiling) {
    reader.Refuse(table,
                  place + ": priority " + std::to_string(*value.priority) + " is above the ceiling, " +
                      std::to_string(value.ceiling),
                  "lower the one or raise the other");
  }
}

std::string Place(const std::string& file, std::uint32_t line, std::uint32_t column) {
  return OneLine(file) + ":" + std::to_string(line) + ":" + std::to_string(column) + ": ";
}

}  // namespace

Result<Settings> ParseSettings(const std::string& text, const std::string& file) {
  toml::table root;
  try {
    root = toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    const toml::source_position where = error.source().begin;
    return Fail(Place(file, where.line, where.column) + OneLine(std::string(error.description())),
                "correct the TOML syntax there");
  }
  Settings settings;
  ConfigReader reader(file);
  reader.OnlyKeys(root, "the file", {"shim", "default", "namespace"});
  reader.Text(root, "shim", settings.shim);
  if (const toml::table* table = reader.Table(root, "default"))
    ReadNamespace(reader, *table, "[default]", settings.other);
  if (const toml::table* table = reader.Table(root, "namespace")) {
    for (const auto& [key, node] : *table) {
      const std::string name(key.str());
      const std::string place = OneLine("[namespace." + name + "]");
      const toml::table* const own = node.as_table();
      // What it does not say is as in [default], but for a priority, which may be above its own ceiling.
      NamespaceSettings value = settings.other;
      value.priority.reset();
      if (own == nullptr) {
        reader.Refuse(node, place + " is no table", "write " + place + " and its keys below");
      } else {
        ReadNamespace(reader, *own, place, value);
      }
      settings.namespaces.emplace(name, value);
    }
  }
  if (reader.Errors().empty()) return settings;
  const ConfigError& first = reader.Errors().front();
  return Fail(Place(first.file, first.line, first.column) + first.what, first.remedy);
}

Result<Settings> LoadSettings(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    if (errno == ENOENT) return Settings{};
    return Fail("cannot read " + path + ": " + std::strerror(errno), "make it readable for root");
  }
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxFileBytes) return Fail(path + " has more than a megabyte", "name the right file by --config");
  return ParseSettings(text, path);
}

}  // namespace xschedd::nri
