#include "daemon/config/conversion.h"

#include <map>
#include <string_view>

namespace xschedd {
namespace {

constexpr std::string_view kNone = "null";

void AddChange(const std::string& key, std::string_view before, std::string_view after, v1::ReloadResponse& out) {
  v1::ReloadResponse::Change& change = *out.add_changes();
  change.set_key(key);
  change.set_before(std::string(before));
  change.set_after(std::string(after));
}

}  // namespace

void FillConfiguration(const std::string& file, const Config& config, const std::vector<Setting>& settings,
                       v1::GetConfigResponse& out) {
  out.set_file(file);
  for (const std::string& one : config.files)
    if (one != file) out.add_drop_ins(one);
  for (const Setting& setting : settings) {
    v1::GetConfigResponse::Setting& to = *out.add_settings();
    to.set_key(setting.key);
    to.set_value(setting.value);
    to.set_default_value(setting.default_value);
    to.set_source(std::string(setting.source));
    to.set_line(setting.place.line);
    to.set_file(setting.place.file);
    to.set_note(std::string(setting.note));
  }
}

void FillChanges(const std::vector<Setting>& before, const std::vector<Setting>& after, v1::ReloadResponse& out) {
  std::map<std::string_view, std::string_view> then;
  for (const Setting& setting : before)
    then.emplace(setting.key, setting.value);
  for (const Setting& setting : after) {
    const auto old = then.find(setting.key);
    const std::string_view was = old != then.end() ? old->second : kNone;
    if (was != setting.value) AddChange(setting.key, was, setting.value, out);
    if (old != then.end()) then.erase(old);
  }
  for (const Setting& setting : before) {
    if (then.count(setting.key) != 0) AddChange(setting.key, setting.value, kNone, out);
  }
}

}  // namespace xschedd
