// The configuration, as `xschedctl config` and `reload` show it. Thread rule: pure functions.
#pragma once

#include <string>
#include <vector>

#include "admin.pb.h"
#include "daemon/config/describe.h"
#include "tools/xschedctl/render_json.h"
#include "tools/xschedctl/render_text.h"

namespace xschedd::ctl {

// `is_running`: what is in force in a daemon; else what the files would set.
struct ShownConfig {
  v1::GetConfigResponse config;
  bool is_running = false;
};
// The configuration read from files. `file`: the main one; "": there was none.
ShownConfig Shown(const Config& config, const std::string& file);
// `only_changed`: leaves out settings at their default.
std::string RenderConfig(const ShownConfig& config, bool only_changed, const TextStyle& style);
Json ToJson(const ShownConfig& config, bool only_changed);

// `files`: those that were examined, at least one.
std::string RenderErrors(const std::vector<ConfigFile>& files, const Examined& examined, const TextStyle& style);
Json ToJson(const std::vector<ConfigFile>& files, const Examined& examined);

std::string RenderReload(const v1::ReloadResponse& answer, bool dry_run, const TextStyle& style);
Json ToJson(const v1::ReloadResponse& answer, bool dry_run);

}  // namespace xschedd::ctl
