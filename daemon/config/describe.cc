#include "daemon/config/describe.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/byte_size.h"
#include "daemon/config/keys.h"

namespace xschedd {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kPolicyName = "policy.name";
constexpr std::string_view kSoftwareGpu = "daemon.software_gpu";
constexpr std::string_view kByIdentity = "by what the kernel says about a process: may raise";
constexpr std::string_view kByChoice = "by what a user chooses: raises only clients of users who may raise";

std::string Text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <typename Value>
void Put(Json& json, const char* key, const std::optional<Value>& value) {
  if (value) json[key] = *value;
}

Json ToJson(const Rule& rule) {
  Json json = Json::object();
  Put(json, "uid", rule.uid);
  Put(json, "gid", rule.gid);
  Put(json, "exe", rule.exe);
  Put(json, "cgroup", rule.cgroup);
  Put(json, "container", rule.container);
  Put(json, "group", rule.group);
  Put(json, "priority", rule.priority);
  Put(json, "weight", rule.weight);
  if (rule.latency) json["latency"] = LatencyText(*rule.latency);
  if (rule.memory_limit) json["memory"] = ByteSizeText(*rule.memory_limit);
  Put(json, "join", rule.join);
  if (!rule.passthrough.empty()) json["passthrough"] = rule.passthrough;
  Put(json, "class", rule.metric_class);
  return json;
}

Json ToJson(const Ceiling& ceiling, std::optional<std::uint32_t> uid) {
  Json json = Json::object();
  Put(json, "uid", uid);
  Put(json, "priority", ceiling.priority);
  Put(json, "weight", ceiling.weight);
  return json;
}

struct Value {
  std::string key;
  Json value;
};

Json ToJson(const policy::SettingRow& row, policy::Value value) {
  return row.IsLever() || value == policy::kByVendor ? Json(policy::Text(row, value)) : Json(value);
}

std::string KeyOf(std::string_view section, std::string_view key) {
  return std::string(section) + "." + std::string(key);
}

// Values that have a default.
std::vector<Value> Values(Config config) {
  std::vector<Value> values = {{"passthrough", config.passthrough},
                               {std::string(kPolicyName), policy::Text(config.policy.name)}};
  for (const policy::SettingRow& row : policy::kSettings)
    values.push_back({KeyOf(row.Section(), row.key), ToJson(row, Get(row, config.policy))});
  for (const KeyRow& row : kKeys) {
    const Json value = std::visit([](const auto* place) { return Json(*place); }, row.place(config));
    values.push_back({KeyOf(row.section, row.key), value});
  }
  return values;
}

Setting FromFile(std::string key, const Json& value, const FilePlace& place) {
  return {std::move(key), Text(value), "null", kFromFile, place, {}};
}

}  // namespace

std::vector<Setting> Describe(const Config& config) {
  const std::vector<Value> values = Values(config);
  const std::vector<Value> defaults = Values(Config{});
  std::vector<Setting> settings;
  for (std::size_t i = 0; i < values.size(); ++i) {
    Setting setting{values[i].key, Text(values[i].value), Text(defaults[i].value)};
    if (const auto place = config.places.find(setting.key); place != config.places.end()) {
      setting.source = kFromFile;
      setting.place = place->second;
    }
    settings.push_back(std::move(setting));
  }
  for (std::size_t i = 0; i < config.rules.size(); ++i) {
    const Rule& rule = config.rules[i];
    settings.push_back(FromFile("rule." + std::to_string(i), ToJson(rule), rule.place));
    if (rule.priority || rule.weight) settings.back().note = rule.IsByChoice() ? kByChoice : kByIdentity;
  }
  // In file order, like the rules.
  std::vector<std::pair<FilePlace, Json>> ceilings;
  for (const auto& [uid, ceiling] : config.ceilings)
    ceilings.emplace_back(ceiling.place, ToJson(ceiling, uid));
  if (config.default_ceiling.place.IsSet())
    ceilings.emplace_back(config.default_ceiling.place, ToJson(config.default_ceiling, std::nullopt));
  const auto rank = [&](const FilePlace& place) {
    return std::pair(std::find(config.files.begin(), config.files.end(), place.file), place.line);
  };
  std::sort(ceilings.begin(), ceilings.end(),
            [&](const auto& a, const auto& b) { return rank(a.first) < rank(b.first); });
  for (std::size_t i = 0; i < ceilings.size(); ++i)
    settings.push_back(FromFile("ceiling." + std::to_string(i), ceilings[i].second, ceilings[i].first));
  return settings;
}

std::vector<Setting> DescribeLive(const Config& config, const policy::Settings& file, bool option, bool software_gpu) {
  std::vector<Setting> settings = Describe(config);
  Config before = config;
  before.policy = file;
  const std::vector<Setting> then = Describe(before);
  for (std::size_t i = 0; i < settings.size(); ++i) {
    Setting& setting = settings[i];
    if (software_gpu && setting.key == kSoftwareGpu) {
      setting.source = kFromOption;
      setting.place = {};
    }
    const bool is_admins = setting.value != then[i].value;
    if (!is_admins && (!option || setting.key != kPolicyName)) continue;
    setting.source = is_admins ? kFromAdmin : kFromOption;
    setting.place = {};
  }
  return settings;
}

}  // namespace xschedd
