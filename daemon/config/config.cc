#include "daemon/config/config.h"

#include <toml++/toml.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "common/one_line.h"
#include "common/passthrough.h"
#include "daemon/config/keys.h"
#include "daemon/config/match.h"
#include "daemon/config/reader.h"
#include "daemon/config/user_name.h"

namespace xschedd {
namespace {

constexpr std::size_t kMaxClassLength = 32;
constexpr std::size_t kMaxClasses = 16;
constexpr std::string_view kOtherClass = "other";
constexpr policy::Limits kAnyId{std::numeric_limits<std::uint32_t>::max(), 0};

struct ReadValue {
  ConfigReader& reader;
  const toml::table& table;
  const KeyRow& row;
  void operator()(std::uint32_t* number) const { reader.Number(table, row.key, {row.max, row.min}, *number); }
  void operator()(bool* flag) const { reader.Flag(table, row.key, *flag); }
  void operator()(std::string* text) const { reader.Text(table, row.key, *text); }
};

// Reads a table whose keys are all in kKeys.
void ReadKeys(ConfigReader& reader, const toml::table& root, std::string_view section, Config& config) {
  const toml::table* table = reader.Table(root, section);
  if (table == nullptr) return;
  std::vector<std::string_view> keys;
  for (const KeyRow& row : kKeys) {
    if (row.section != section) continue;
    keys.push_back(row.key);
    std::visit(ReadValue{reader, *table, row}, row.place(config));
  }
  reader.OnlyKeys(*table, "[" + std::string(section) + "]", keys);
}

std::vector<std::string_view> KeysOf(std::string_view section) {
  std::vector<std::string_view> keys;
  for (const policy::SettingRow& row : policy::kSettings)
    if (row.Section() == section) keys.push_back(row.key);
  return keys;
}

void ReadLever(ConfigReader& reader, const toml::table& table, const policy::SettingRow& row,
               policy::Settings& settings) {
  std::string word;
  if (!reader.Text(table, row.key, word) || policy::Set(row, policy::ValueOfWord(row, word), settings)) return;
  reader.Refuse(*table.get(row.key), std::string(row.key) + " is \"" + word + "\"",
                "choose \"" + std::string(row.on) + "\" or \"off\"");
}

void ReadSettings(ConfigReader& reader, const toml::table& table, std::string_view section,
                  policy::Settings& settings) {
  for (const policy::SettingRow& row : policy::kSettings) {
    if (row.Section() != section) continue;
    std::uint32_t number = 0;
    if (row.MayBeVendors() && table[row.key].value<std::string_view>() == policy::kAuto) {
      (void)policy::Set(row, policy::kByVendor, settings);  // always allowed
    } else if (row.IsLever()) {
      ReadLever(reader, table, row, settings);
    } else if (reader.Number(table, row.key, row.Range(), number)) {
      (void)policy::Set(row, number, settings);  // it is in range
    }
  }
}

void ReadPolicy(ConfigReader& reader, const toml::table& table, policy::Settings& settings) {
  std::vector<std::string_view> keys = KeysOf("policy");
  keys.insert(keys.begin(), "name");
  reader.OnlyKeys(table, "[policy]", keys);
  std::string name(policy::Text(settings.name));
  reader.Text(table, "name", name);
  if (const auto known = policy::NameFrom(name)) {
    settings.name = *known;
  } else {
    reader.Refuse(*table.get("name"), "there is no policy \"" + name + "\"", "choose " + policy::NamesText());
  }
  ReadSettings(reader, table, "policy", settings);
}

// [device] or [amd].
void ReadLevers(ConfigReader& reader, const toml::table& table, std::string_view section, policy::Settings& settings) {
  reader.OnlyKeys(table, "[" + std::string(section) + "]", KeysOf(section));
  ReadSettings(reader, table, section, settings);
}

// Checks every entry here, because a client would silently ignore a wrong one.
bool ReadPassthrough(ConfigReader& reader, const toml::table& table, std::vector<std::string>& entries) {
  return reader.Texts(table, "passthrough", entries, [](const std::string& text) -> std::optional<Error> {
    const auto entry = ParsePassthrough(text);
    return entry ? std::nullopt : std::optional<Error>(entry.error());
  });
}

// Limited, because the class becomes a label of metrics.
void ReadClass(ConfigReader& reader, const toml::table& table, Rule& rule) {
  std::string text;
  if (!reader.Text(table, "class", text)) return;
  rule.metric_class = text;
  const auto is_allowed = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  if (text.size() > kMaxClassLength || !std::all_of(text.begin(), text.end(), is_allowed)) {
    reader.Refuse(*table.get("class"), "\"" + text + "\" is no class",
                  "give at most " + std::to_string(kMaxClassLength) + " of a-z, 0-9, - and _");
  } else if (text == kOtherClass) {
    reader.Refuse(*table.get("class"), "the class \"other\" is reserved for clients without room in another",
                  "choose another name");
  }
}

void CheckClasses(ConfigReader& reader, const toml::table& root, const std::vector<Rule>& rules) {
  std::set<std::string> names;
  for (const Rule& rule : rules) {
    if (rule.metric_class) names.insert(*rule.metric_class);
  }
  if (names.size() <= kMaxClasses) return;
  reader.Refuse(*root.get("rule"), "the rules name " + std::to_string(names.size()) + " classes",
                "name at most " + std::to_string(kMaxClasses));
}

// Refuses, at its place in the file, an address that ParseListenAddress does not understand.
void CheckAddress(ConfigReader& reader, const toml::table& root, const MetricsSettings& metrics) {
  const toml::node_view node = root["metrics"]["address"];
  if (!node.is_string()) return;
  if (const auto address = ParseListenAddress(metrics.address); !address) {
    reader.Refuse(*node.node(), address.error().what, address.error().remedy);
  }
}

// Reads a uid, or the name of its user.
void ReadUser(ConfigReader& reader, const toml::table& table, std::optional<std::uint32_t>& uid) {
  std::uint32_t number = 0;
  std::string name;
  if (reader.Number(table, "uid", kAnyId, number)) uid = number;
  if (!reader.Text(table, "user", name)) return;
  if (uid) {
    reader.Refuse(*table.get("user"), "a uid and a user", "give one of them");
  } else if (const Result<std::uint32_t> found = UidOf(name)) {
    uid = *found;
  } else {
    reader.Refuse(*table.get("user"), found.error().what, found.error().remedy);
  }
}

void ReadRule(ConfigReader& reader, const toml::table& table, Config& config) {
  const std::size_t errors = reader.ErrorCount();
  reader.OnlyKeys(table, "[[rule]]",
                  {"uid", "user", "gid", "exe", "cgroup", "container", "group", "priority", "weight", "latency",
                   "memory", "join", "passthrough", "class"});
  Rule rule;
  std::uint32_t number = 0;
  int priority = 0;
  std::string text;
  ReadUser(reader, table, rule.uid);
  if (reader.Number(table, "gid", kAnyId, number)) rule.gid = number;
  if (reader.Text(table, "exe", text)) rule.exe = text;
  if (reader.Text(table, "cgroup", text)) rule.cgroup = text;
  if (reader.Text(table, "container", text)) {
    rule.container = text;
    if (!IsContainerId(text)) {
      reader.Refuse(*table.get("container"), "\"" + text + "\" is no container's id",
                    "give 12 to 64 hexadecimal digits, as docker ps shows them");
    }
  }
  if (reader.Text(table, "group", text)) rule.group = text;
  if (reader.Priority(table, "priority", priority)) rule.priority = priority;
  if (reader.Number(table, "weight", policy::kWeightLimits, number)) rule.weight = number;
  if (reader.Text(table, "latency", text)) {
    const Result<Latency> latency = ParseLatency(text);
    if (latency) {
      rule.latency = *latency;
    } else {
      reader.Refuse(*table.get("latency"), latency.error().what, latency.error().remedy);
    }
  }
  if (std::uint64_t memory = 0; reader.Memory(table, "memory", memory)) rule.memory_limit = memory;
  if (reader.Text(table, "join", text)) rule.join = text;
  ReadPassthrough(reader, table, rule.passthrough);
  ReadClass(reader, table, rule);
  rule.place = reader.PlaceOf(table);
  // A wrong value has been reported already.
  if (reader.ErrorCount() != errors) return;
  if (!rule.uid && !rule.gid && !rule.exe && !rule.cgroup && !rule.container && !rule.group) {
    reader.Refuse(table, "a [[rule]] that matches every client",
                  "give it a uid, user, gid, exe, cgroup, container or group");
  }
  if (!rule.priority && !rule.weight && !rule.latency && !rule.memory_limit && !rule.join && rule.passthrough.empty() &&
      !rule.metric_class) {
    reader.Refuse(table, "a [[rule]] that sets nothing",
                  "give it a priority, weight, latency, memory, join, passthrough or class");
  }
  config.rules.push_back(std::move(rule));
}

void ReadCeiling(ConfigReader& reader, const toml::table& table, Config& config) {
  const std::size_t errors = reader.ErrorCount();
  reader.OnlyKeys(table, "[[ceiling]]", {"uid", "user", "priority", "weight"});
  Ceiling ceiling;
  int priority = 0;
  std::uint32_t number = 0;
  if (reader.Priority(table, "priority", priority)) ceiling.priority = priority;
  if (reader.Number(table, "weight", policy::kWeightLimits, number)) ceiling.weight = number;
  ceiling.place = reader.PlaceOf(table);
  std::optional<std::uint32_t> uid;
  ReadUser(reader, table, uid);
  if (reader.ErrorCount() != errors) return;
  if (!ceiling.priority && !ceiling.weight) {
    reader.Refuse(table, "a [[ceiling]] that limits nothing", "give it a priority or weight");
  }
  Ceiling& kept = uid ? config.ceilings[*uid] : config.default_ceiling;
  if (kept.place.IsSet() && kept.place.file == ceiling.place.file) {
    const std::string whose = uid ? "of uid " + std::to_string(*uid) : "without a uid";
    reader.Refuse(table, "a second [[ceiling]] " + whose, "keep one of them");
  }
  kept = ceiling;
}

void Add(std::vector<ConfigError> errors, std::size_t count, Examined& examined) {
  std::stable_sort(errors.begin(), errors.end(), [](const ConfigError& a, const ConfigError& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  const std::size_t kept = std::min(errors.size(), ConfigReader::kMaxErrors - examined.errors.size());
  std::move(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(kept), std::back_inserter(examined.errors));
  examined.more_errors += count - kept;
}

// Applies a file over earlier ones.
void ReadFile(const ConfigFile& file, Config& config, Examined& examined) {
  config.files.push_back(file.path);
  const auto parsed = ParseToml(file.text, file.path);
  if (!parsed) return Add({parsed.error()}, 1, examined);
  const toml::table& root = *parsed;
  ConfigReader reader(file.path);
  reader.OnlyKeys(
      root, "the file",
      {"daemon", "policy", "device", "amd", "rule", "ceiling", "quota", "passthrough", "metrics", "access"});
  if (const toml::table* table = reader.Table(root, "policy")) ReadPolicy(reader, *table, config.policy);
  for (const std::string_view section : {policy::kOfDevice, policy::kOfAmd})
    if (const toml::table* table = reader.Table(root, section)) ReadLevers(reader, *table, section, config.policy);
  reader.EachTable(root, "rule", [&](const toml::table& table) { ReadRule(reader, table, config); });
  reader.EachTable(root, "ceiling", [&](const toml::table& table) { ReadCeiling(reader, table, config); });
  for (const std::string_view section : {"daemon", "quota", "metrics", "access"})
    ReadKeys(reader, root, section, config);
  CheckAddress(reader, root, config.metrics);
  if (root.contains("rule")) CheckClasses(reader, root, config.rules);
  std::vector<std::string> passthrough;
  if (ReadPassthrough(reader, root, passthrough)) {
    if (passthrough.empty()) config.passthrough.clear();
    config.passthrough.insert(config.passthrough.end(), passthrough.begin(), passthrough.end());
  }
  for (const auto& [key, place] : reader.Places())
    config.places.insert_or_assign(key, place);
  Add(reader.Errors(), reader.ErrorCount(), examined);
}

}  // namespace

bool Rule::IsByChoice() const {
  const bool is_by_cgroup = cgroup && !IsNamedByUsers(*cgroup);
  return !uid && !gid && !container && !is_by_cgroup;
}

Error ConfigError::AsError() const {
  return {OneLine(file) + ":" + std::to_string(line) + ":" + std::to_string(column) + ": " + what, remedy};
}

Examined ExamineConfig(const std::vector<ConfigFile>& files) {
  Examined examined;
  Config config;
  for (const ConfigFile& file : files)
    ReadFile(file, config, examined);
  if (examined.errors.empty()) examined.config = std::move(config);
  return examined;
}

Result<Config> ParseConfig(const std::vector<ConfigFile>& files) {
  Examined examined = ExamineConfig(files);
  if (examined.config) return std::move(*examined.config);
  return tl::unexpected<Error>(examined.errors.front().AsError());
}

}  // namespace xschedd
